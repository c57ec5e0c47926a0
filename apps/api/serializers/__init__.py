"""The shapes of requests and answers: plain, one module for each subject."""
