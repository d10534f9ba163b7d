"""Methods: one coroutine per question, each short enough to be read beside the paper."""
