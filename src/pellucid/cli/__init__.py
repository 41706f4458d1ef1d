"""The programs of the command `pellucid`. They use the library as any program does: `import pellucid`."""
