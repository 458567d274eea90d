/**
 * Finds properties of an interface that no source outside the interface's own folder reads, as the type checker sees
 * it: by access, by destructuring, or by handing the object to something whose own type has a property of that name.
 */
import { dirname, join } from 'node:path';
import ts from 'typescript';

export interface UnreadOptions {
  readonly top: string;
  /** Sources of the program, relative to `top`; what they import is read as well. */
  readonly roots: readonly string[];
  /** Where interfaces are declared, relative to `top`, with their names. */
  readonly declared: readonly (readonly [file: string, name: string])[];
  /** Whether reading in this file (relative to `top`) counts. */
  readonly counts: (file: string) => boolean;
}

const compilerOptions: ts.CompilerOptions = {
  target: ts.ScriptTarget.ES2024,
  lib: ['lib.es2025.d.ts', 'lib.esnext.array.d.ts', 'lib.esnext.disposable.d.ts'],
  module: ts.ModuleKind.NodeNext,
  moduleResolution: ts.ModuleResolutionKind.NodeNext,
  types: [],
  strict: true,
  noEmit: true,
  allowImportingTsExtensions: true,
  skipLibCheck: true,
};

/** Every property below an interface, by its declaration: "limits.requestBytesMax". Types of another name are not entered. */
const propertiesBelow = (members: ts.NodeArray<ts.TypeElement>, path: string): (readonly [ts.Node, string])[] =>
  members.flatMap((member) => {
    if (!ts.isPropertySignature(member) || member.type === undefined) return [];
    const name = `${path}${member.name.getText()}`;
    if (ts.isTypeLiteralNode(member.type)) return propertiesBelow(member.type.members, `${name}.`);
    return [[member, name] as const];
  });

/** Our own modules alone: reading the types of packages would take most of the time, and they have none of our properties. */
const hostOf = (): ts.CompilerHost => {
  const host = ts.createCompilerHost(compilerOptions);
  host.resolveModuleNameLiterals = (literals, from) =>
    literals.map(({ text }) => ({
      resolvedModule: text.startsWith('.')
        ? { resolvedFileName: join(dirname(from), text), extension: ts.Extension.Ts }
        : undefined,
    }));
  return host;
};

const membersOf = (program: ts.Program, file: string, name: string): ts.NodeArray<ts.TypeElement> => {
  const found = program
    .getSourceFile(file)
    ?.statements.find((statement) => ts.isInterfaceDeclaration(statement) && statement.name.text === name);
  if (found === undefined || !ts.isInterfaceDeclaration(found)) throw new Error(`${file} has no interface ${name}`);
  return found.members;
};

/** An object of a group's name that is handed on whole: "config.limits", or "limits" itself. */
const isHandedOn = (node: ts.Node, groups: ReadonlySet<string>): node is ts.Expression => {
  if (ts.isPropertyAccessExpression(node.parent) && node.parent.expression === node) return false;
  if (ts.isPropertyAccessExpression(node)) return groups.has(node.name.text);
  return ts.isIdentifier(node) && groups.has(node.text) && !ts.isPropertyAccessExpression(node.parent);
};

/** Names of the properties that nobody reads, sorted. */
export const unreadProperties = ({ top, roots, declared, counts }: UnreadOptions): readonly string[] => {
  const program = ts.createProgram(
    roots.map((root) => join(top, root)),
    compilerOptions,
    hostOf(),
  );
  const checker = program.getTypeChecker();
  const unread = new Map(
    declared.flatMap(([file, name]) => propertiesBelow(membersOf(program, join(top, file), name), '')),
  );
  const read = (symbol: ts.Symbol | undefined): void => {
    for (const declaration of symbol?.declarations ?? []) unread.delete(declaration);
  };
  const names = new Set([...unread.keys()].map((node) => (node as ts.PropertySignature).name.getText()));
  const groups = new Set([...unread.values()].flatMap((name) => name.split('.').slice(0, -1)));
  const watched = (symbol: ts.Symbol): boolean => symbol.declarations?.some((one) => unread.has(one)) === true;

  const readByName = (type: ts.Type, name: string): void => read(checker.getPropertyOfType(type, name));
  const handedOn = (node: ts.Expression): void => {
    const properties = checker.getTypeAtLocation(node).getProperties().filter(watched);
    if (properties.length === 0) return;
    const context = checker.getContextualType(node);
    if (context === undefined) return;
    const wanted = checker.getNonNullableType(context);
    for (const property of properties) {
      const other = checker.getPropertyOfType(wanted, property.name);
      if (other !== undefined && !watched(other)) read(property);
    }
  };
  const visit = (node: ts.Node): void => {
    if (ts.isPropertyAccessExpression(node) && names.has(node.name.text)) read(checker.getSymbolAtLocation(node.name));
    if (ts.isBindingElement(node) && names.has((node.propertyName ?? node.name).getText()))
      readByName(checker.getTypeAtLocation(node.parent), (node.propertyName ?? node.name).getText());
    if (isHandedOn(node, groups)) handedOn(node);
    ts.forEachChild(node, visit);
  };
  for (const source of program.getSourceFiles()) {
    const file = source.fileName.slice(top.length + 1);
    if (!source.isDeclarationFile && counts(file)) ts.forEachChild(source, visit);
  }
  return [...unread.values()].sort();
};
