"""CodeSpace: the execution layer for coding agents."""
