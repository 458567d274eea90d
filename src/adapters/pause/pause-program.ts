/**
 * The pause program: holds a pod's namespaces, reaps what is orphaned in them, and ends with status 0 when it is told
 * to. Made here, byte by byte, so that scribe has no image to pull and no compiler to need: 273 bytes for x86-64, 304
 * for arm64. It has no data to be attacked through: no arguments, no environment, no memory but its stack.
 *
 *   block SIGINT, SIGTERM and SIGCHLD          blocked signals are kept even for process 1, which else gets none
 *   for ever: wait for one of them
 *     SIGINT, SIGTERM: exit_group(0)
 *     SIGCHLD: wait4(-1, WNOHANG) until there is none left: several ends may be one signal
 */
import { FailureError } from '../../domain/model/errors.ts';

/** Each line: the bytes in memory order, "|", the instruction. The jumps and addresses are relative. */
const x64Listing = `
  31 ff                 | xor edi, edi            SIG_BLOCK
  48 8d 35 50 00 00 00  | lea rsi, [rip + 0x50]   signals
  31 d2                 | xor edx, edx            the old ones are of no interest
  6a 08                 | push 8
  41 5a                 | pop r10                 bytes of a signal set
  6a 0e                 | push 14
  58                    | pop rax                 rt_sigprocmask
  0f 05                 | syscall
  48 8d 3d 3e 00 00 00  | lea rdi, [rip + 0x3e]   wait: signals
  31 f6                 | xor esi, esi
  31 d2                 | xor edx, edx            no time limit
  6a 08                 | push 8
  41 5a                 | pop r10
  b8 80 00 00 00        | mov eax, 128            rt_sigtimedwait
  0f 05                 | syscall
  83 f8 02              | cmp eax, 2              SIGINT
  74 21                 | je done
  83 f8 0f              | cmp eax, 15             SIGTERM
  74 1c                 | je done
  83 f8 11              | cmp eax, 17             SIGCHLD
  75 db                 | jne wait                interrupted
  48 83 cf ff           | or rdi, -1              reap: any child
  31 f6                 | xor esi, esi
  6a 01                 | push 1
  5a                    | pop rdx                 WNOHANG
  45 31 d2              | xor r10d, r10d
  6a 3d                 | push 61
  58                    | pop rax                 wait4
  0f 05                 | syscall
  85 c0                 | test eax, eax
  7f eb                 | jg reap
  eb c4                 | jmp wait
  31 ff                 | xor edi, edi            done
  b8 e7 00 00 00        | mov eax, 231            exit_group
  0f 05                 | syscall
  02 40 01 00 00 00 00 00 | signals: SIGINT (bit 1), SIGTERM (bit 14), SIGCHLD (bit 16)
`;

/** As above; each instruction is one little-endian word. */
const arm64Listing = `
  00 00 80 d2 | mov x0, #0       SIG_BLOCK
  a1 03 00 10 | adr x1, signals
  02 00 80 d2 | mov x2, #0
  03 01 80 d2 | mov x3, #8       bytes of a signal set
  e8 10 80 d2 | mov x8, #135     rt_sigprocmask
  01 00 00 d4 | svc #0
  00 03 00 10 | adr x0, signals  wait
  01 00 80 d2 | mov x1, #0
  02 00 80 d2 | mov x2, #0       no time limit
  03 01 80 d2 | mov x3, #8
  28 11 80 d2 | mov x8, #137     rt_sigtimedwait
  01 00 00 d4 | svc #0
  1f 08 00 71 | cmp w0, #2       SIGINT
  c0 01 00 54 | b.eq done
  1f 3c 00 71 | cmp w0, #15      SIGTERM
  80 01 00 54 | b.eq done
  1f 44 00 71 | cmp w0, #17      SIGCHLD
  a1 fe ff 54 | b.ne wait        interrupted
  00 00 80 92 | mov x0, #-1      reap: any child
  01 00 80 d2 | mov x1, #0
  22 00 80 d2 | mov x2, #1       WNOHANG
  03 00 80 d2 | mov x3, #0
  88 20 80 d2 | mov x8, #260     wait4
  01 00 00 d4 | svc #0
  1f 00 00 71 | cmp w0, #0
  2c ff ff 54 | b.gt reap
  ec ff ff 17 | b wait
  00 00 80 d2 | mov x0, #0       done
  c8 0b 80 d2 | mov x8, #94      exit_group
  01 00 00 d4 | svc #0
  02 40 01 00 00 00 00 00 | signals: SIGINT (bit 1), SIGTERM (bit 14), SIGCHLD (bit 16)
`;

const bytesOf = (listing: string): Buffer =>
  Buffer.from(
    listing
      .split('\n')
      .map((line) => line.split('|')[0]?.replaceAll(' ', ''))
      .join(''),
    'hex',
  );

const ELF_HEADER_BYTES = 64;
const PROGRAM_HEADER_BYTES = 56;
const PROGRAM_HEADERS = 2;
const CODE_OFFSET = ELF_HEADER_BYTES + PROGRAM_HEADERS * PROGRAM_HEADER_BYTES;
/** Where the file is mapped: anywhere above what the kernel keeps free at 0. */
const BASE_ADDRESS = 0x400000n;
/** The largest page size of either architecture. */
const ALIGNMENT = 0x10000n;

/** An executable ELF file (System V ABI) of one segment, the file itself, and a stack that is not executable. */
const elf = (machine: number, code: Buffer): Uint8Array => {
  const PT_LOAD = 1;
  const PT_GNU_STACK = 0x6474e551;
  const [X, W, R] = [1, 2, 4] as const;
  const file = Buffer.concat([Buffer.alloc(CODE_OFFSET), code]);
  file.set([0x7f, 0x45, 0x4c, 0x46, 2, 1, 1]); // ELF, 64 bits, little-endian, version 1
  file.writeUInt16LE(2, 16); // type: executable
  file.writeUInt16LE(machine, 18);
  file.writeUInt32LE(1, 20); // version
  file.writeBigUInt64LE(BASE_ADDRESS + BigInt(CODE_OFFSET), 24); // entry
  file.writeBigUInt64LE(BigInt(ELF_HEADER_BYTES), 32); // program headers
  file.writeUInt16LE(ELF_HEADER_BYTES, 52);
  file.writeUInt16LE(PROGRAM_HEADER_BYTES, 54);
  file.writeUInt16LE(PROGRAM_HEADERS, 56);
  const load = file.subarray(ELF_HEADER_BYTES);
  load.writeUInt32LE(PT_LOAD, 0);
  load.writeUInt32LE(R | X, 4);
  load.writeBigUInt64LE(BASE_ADDRESS, 16);
  load.writeBigUInt64LE(BASE_ADDRESS, 24);
  load.writeBigUInt64LE(BigInt(file.length), 32); // bytes in the file
  load.writeBigUInt64LE(BigInt(file.length), 40); // bytes in memory
  load.writeBigUInt64LE(ALIGNMENT, 48);
  const stack = load.subarray(PROGRAM_HEADER_BYTES);
  stack.writeUInt32LE(PT_GNU_STACK, 0);
  stack.writeUInt32LE(R | W, 4);
  return file;
};

const EM_X86_64 = 62;
const EM_AARCH64 = 183;

/** The pause program for an architecture as Node names it (process.arch). Throws HostLacks for one there is none for. */
export const pauseProgram = (architecture: string): Uint8Array => {
  switch (architecture) {
    case 'x64':
      return elf(EM_X86_64, bytesOf(x64Listing));
    case 'arm64':
      return elf(EM_AARCH64, bytesOf(arm64Listing));
    default:
      throw new FailureError(
        'HostLacks',
        `There is no pause program for ${architecture}: set sandbox_image in the configuration to an image that has one.`,
      );
  }
};
