"""The planner's compiled method: tables in, policy and values out. Importing this compiles nothing."""
