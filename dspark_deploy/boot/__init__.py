"""What a boot's log tells: phases, figures and failures. Pure: bytes in, frozen values out, bounded memory."""
