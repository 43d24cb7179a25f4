"""What every verb of the command line does, as a function of values; the verbs call these."""
