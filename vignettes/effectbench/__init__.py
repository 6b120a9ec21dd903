"""EffectBench: how near packages come to effects that are known exactly, on 60 processes."""
