"""The rules, pure: functions of facts and `now` that return decisions as frozen values."""
