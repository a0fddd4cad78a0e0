"""One file per algorithm: its NamedTuple, its verbs (`kernelrl.episodes.verbs`) and its public class."""
