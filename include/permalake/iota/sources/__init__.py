"""Sources of milestones: archives, chronicle logs, nodes."""
