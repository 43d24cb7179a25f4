"""Many independent jobs, over processes of this machine or a Ray cluster."""
