"""Where milestones come from: archives, chronicle logs, nodes."""
