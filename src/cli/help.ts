/** Writes help from what commands say of themselves, in the sections of a manual page. Pure. */
import type { Command, Option, Options } from './command.ts';
import { HELP } from './parse.ts';

const WIDTH = 80;
const MARGIN = 4;

const wrap = (text: string, indent: number): string => {
  const lines: string[] = [];
  let line = '';
  for (const word of text.split(' ')) {
    if (line !== '' && indent + line.length + 1 + word.length > WIDTH) {
      lines.push(line);
      line = word;
    } else line = line === '' ? word : `${line} ${word}`;
  }
  return [...lines, line].map((text) => ' '.repeat(indent) + text).join('\n');
};

const section = (title: string, parts: readonly string[]): string => `${title}\n${parts.join('\n\n')}`;

const statusHelp = (zeroAndOne = '0 when it is done, 1 when it failed'): string =>
  section('EXIT STATUS', [wrap(`${zeroAndOne}, 2 when the command line is wrong.`, MARGIN)]);

const usageOf = (name: string, { value, repeatable, required }: Option): string => {
  const form = `--${name}${value === undefined ? '' : ` ${value}`}`;
  return `${required ? form : `[${form}]`}${repeatable ? '...' : ''}`;
};

/** The words after the name are wrapped under each other; no option is parted from its value. */
const synopsis = ({ name, options, operands }: Command): string => {
  const start = `${' '.repeat(MARGIN)}scribe ${name}`;
  const words = Object.entries(options).map(([option, form]) => usageOf(option, form));
  if (operands !== undefined) words.push(operands.name);
  const lines: string[] = [];
  let line = start;
  for (const word of words) {
    if (line.length + 1 + word.length > WIDTH) {
      lines.push(line);
      line = ' '.repeat(start.length);
    }
    line += ` ${word}`;
  }
  return [...lines, line].join('\n');
};

const optionHelp = ([name, { value, short, about, repeatable }]: [string, Option]): string => {
  const head = `--${name}${value === undefined ? '' : ` ${value}`}${short === undefined ? '' : `, -${short}`}`;
  const more = repeatable ? ' May be given more than once.' : '';
  return `${' '.repeat(MARGIN)}${head}\n${wrap(`${about}${more}`, 2 * MARGIN)}`;
};

const exampleHelp = ([line, about]: readonly [string, string]): string =>
  `${' '.repeat(MARGIN)}${line}\n${wrap(about, 2 * MARGIN)}`;

/** The manual page of one command. */
export const commandHelp = (of: Command): string => {
  const options: Options = { ...of.options, help: HELP };
  const sections = [
    section('NAME', [wrap(`scribe ${of.name} - ${of.summary}`, MARGIN)]),
    section('SYNOPSIS', [synopsis(of)]),
    section(
      'DESCRIPTION',
      of.description.map((paragraph) => wrap(paragraph, MARGIN)),
    ),
    section('OPTIONS', Object.entries(options).map(optionHelp)),
    statusHelp(of.exitStatus),
    ...(of.examples === undefined ? [] : [section('EXAMPLES', of.examples.map(exampleHelp))]),
  ];
  return `${sections.join('\n\n')}\n`;
};

/** The page that lists commands. */
export const overview = (commands: readonly (readonly [name: string, summary: string])[], group = ''): string => {
  const start = group === '' ? 'scribe' : `scribe ${group}`;
  const widest = Math.max(...commands.map(([name]) => name.length));
  const lines = commands.map(([name, summary]) => `${' '.repeat(MARGIN)}${name.padEnd(widest)}  ${summary}`);
  const name = 'scribe - a Kubernetes container runtime that writes everything down';
  const more =
    'scribe COMMAND --help describes a command. The configuration is read from /etc/scribe/config.toml unless --config names another file; it says where root, state and socket are, unless options do.';
  return `${[
    section('NAME', [wrap(name, MARGIN)]),
    section('SYNOPSIS', [`${' '.repeat(MARGIN)}${start} COMMAND [OPTION]...`]),
    `COMMANDS\n${lines.join('\n')}`,
    section('DESCRIPTION', [wrap(more, MARGIN)]),
    statusHelp(),
  ].join('\n\n')}\n`;
};
