"""Operations, one module for each subject: parse, call, render."""
