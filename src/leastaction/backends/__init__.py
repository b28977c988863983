"""The backends, which compute a Step: each follows `leastaction.step.form` and states no mathematics of its own."""
