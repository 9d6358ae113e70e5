"""What everything stands on: arrays and devices, modules, twins, errors, files, signals."""
