"""`plumbob init`: a first plan from options, questions and a look into the files."""
