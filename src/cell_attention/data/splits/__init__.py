"""Which graphs train and which are held out."""
