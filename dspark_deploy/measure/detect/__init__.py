"""What is wrong with an answer's text. Pure: one file a kind of fault, its rates measured on a labelled set."""
