/**
 * The inflater that takes least time of those that are installed. Only what is locked up may have it read what strangers sent: much
 * of ISA-L is assembler.
 */
import type { Inflater } from './inflater.ts';
import { createIsalInflater } from './isal.ts';
import { createZlibInflater } from './zlib.ts';

export const createFastestInflater: () => Inflater = createIsalInflater ?? createZlibInflater;
