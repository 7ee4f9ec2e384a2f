"""Questions to a program that was evaluated: functions over its values, which look at no code."""
