/**
 * Builds the `FileDescriptorProto` of each protocol file, in which the reflection service sends it. All type names
 * are fully qualified.
 */
import protobuf from 'protobufjs';
import descriptors from 'protobufjs/ext/descriptor/index.js';
import type { ProtoFile } from './protos.ts';

/** One file, as the reflection service sends it. */
export interface DescribedFile {
  readonly name: string;
  readonly imports: readonly string[];
  /** The full names of its messages, enumerations, services and methods. */
  readonly symbols: ReadonlySet<string>;
  readonly bytes: Uint8Array;
}

/** The part of a message's descriptor that has to be changed. */
interface MessageDescriptor {
  readonly field?: readonly { readonly name: string; typeName?: string }[];
  readonly nestedType?: readonly (MessageDescriptor & { readonly name: string })[];
}

interface Describable {
  toDescriptor(syntax: string): MessageDescriptor;
}

/** Describes all files. @param types the types of all files, resolved */
export function describedFiles(files: readonly ProtoFile[], types: protobuf.Root): DescribedFile[] {
  return files.map((file) => describe(file, types));
}

function describe(
  { name, package: ofPackage, imports, types: text }: ProtoFile,
  types: protobuf.Root,
): DescribedFile {
  // The types of the package that are defined in this file.
  const own = packageIn(typesOfAlone({ name, package: ofPackage, imports, types: text }), ofPackage);
  const all = packageIn(types, ofPackage);
  const descriptor = { name, package: ofPackage, dependency: imports, syntax: 'proto3' };
  const messageType: MessageDescriptor[] = [];
  const enumType: unknown[] = [];
  const service: unknown[] = [];
  const symbols = new Set<string>();
  for (const { name: typeName } of own.nestedArray) {
    const type = all.get(typeName);
    if (type === null) continue;
    addSymbols(type, symbols);
    const described = (type as unknown as Describable).toDescriptor('proto3');
    if (type instanceof protobuf.Type) messageType.push(withFullNames(type, described));
    else if (type instanceof protobuf.Enum) enumType.push(described);
    else service.push(described);
  }
  const bytes = descriptors.FileDescriptorProto.encode({
    ...descriptor,
    messageType,
    enumType,
    service,
  }).finish();
  return { name, imports, symbols, bytes };
}

/** Parses one file alone. References to other files stay unresolved, because only the names are used. */
function typesOfAlone(file: ProtoFile): protobuf.Root {
  const root = new protobuf.Root();
  protobuf.parse(`syntax = "proto3"; package ${file.package}; ${file.types}`, root, { keepCase: true });
  return root;
}

function packageIn(root: protobuf.Root, name: string): protobuf.NamespaceBase {
  const found = root.lookup(name);
  if (!(found instanceof protobuf.Namespace)) throw new Error(`there is no package ${name}`);
  return found;
}

function withFullNames(type: protobuf.Type, described: MessageDescriptor): MessageDescriptor {
  for (const field of described.field ?? []) {
    const resolved = type.fields[field.name]?.resolvedType;
    if (resolved !== undefined && resolved !== null) field.typeName = resolved.fullName;
  }
  for (const nested of described.nestedType ?? []) {
    const child = type.get(nested.name);
    if (child instanceof protobuf.Type) withFullNames(child, nested);
  }
  return described;
}

function addSymbols(type: protobuf.ReflectionObject, symbols: Set<string>): void {
  symbols.add(type.fullName.slice(1));
  if (type instanceof protobuf.Service)
    for (const method of type.methodsArray) symbols.add(`${type.fullName.slice(1)}.${method.name}`);
  if (type instanceof protobuf.Type) for (const nested of type.nestedArray) addSymbols(nested, symbols);
}
