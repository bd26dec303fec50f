"""The scripts behind `make`: pair, execute, stage, build, check, lock."""
