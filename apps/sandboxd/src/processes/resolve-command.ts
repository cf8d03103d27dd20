import { accessSync, closeSync, constants, openSync, readSync, statSync } from 'node:fs'
import { resolve } from 'node:path'
import { checkExecutable, ENOSYS } from './linux/libc.ts'
import type { ProcessSpec, SpawnFailure } from './process.ts'

/** Searched when the process has no PATH; `process-env.ts` gives one to every session. */
const DEFAULT_PATH = '/usr/local/bin:/usr/bin:/bin'
/** The kernel reads no more of a script's first line than this. */
const SHEBANG_BYTES = 256

export interface ResolvedCommand {
  /** Absolute path of an executable file. */
  readonly file: string
}

type FileState = 'missing' | 'not_executable' | 'executable'

/** Finds the file of `spec.argv[0]`, as `execvp` would in `spec.cwd` with `spec.env`. */
export function resolveCommand(spec: ProcessSpec): ResolvedCommand | SpawnFailure {
  const name = spec.argv[0]
  if (!isDirectory(spec.cwd)) {
    return fail('spawn_failed', name, `working directory "${spec.cwd}" does not exist`)
  }
  if (name === '') return fail('not_found', name, 'the name is empty')
  const candidates = name.includes('/') ? [resolve(spec.cwd, name)] : searchPath(name, spec)
  let blocked: string | undefined
  for (const file of candidates) {
    const state = inspect(file)
    if (state === 'executable') return checkInterpreter(name, file)
    if (state === 'not_executable') blocked ??= file
  }
  if (blocked !== undefined) {
    return fail(
      'not_executable',
      name,
      `"${blocked}" is ${isDirectory(blocked) ? 'a folder' : 'not executable'}`,
    )
  }
  return fail('not_found', name, name.includes('/') ? 'no such file' : 'not found in PATH')
}

export function isFailure<T extends object>(value: T | SpawnFailure): value is SpawnFailure {
  return 'failure' in value
}

export function fail(failure: SpawnFailure['failure'], name: string, reason: string): SpawnFailure {
  return { failure, message: `Cannot start "${name}": ${reason}` }
}

function searchPath(name: string, spec: ProcessSpec): string[] {
  const path = spec.env['PATH'] ?? DEFAULT_PATH
  // An empty element means the working directory, as for execvp.
  return path.split(':').map((directory) => resolve(spec.cwd, directory, name))
}

/** True when the current user may execute the file. */
export function isExecutable(file: string): boolean {
  return inspect(file) === 'executable'
}

function inspect(file: string): FileState {
  try {
    const stats = statSync(file, { throwIfNoEntry: false })
    if (stats === undefined) return 'missing'
    if (!stats.isFile()) return 'not_executable'
  } catch {
    // ENOTDIR, ELOOP or a NUL in the name: there is no such file.
    return 'missing'
  }
  const result = checkExecutable(file)
  if (result !== -ENOSYS) return result === 0 ? 'executable' : 'not_executable'
  try {
    // faccessat2 needs Linux 5.8; access() checks the real user id instead of the effective one.
    accessSync(file, constants.X_OK)
    return 'executable'
  } catch {
    // Any refusal means the kernel would refuse to execute it too.
    return 'not_executable'
  }
}

/** For a script whose interpreter is missing the kernel returns ENOENT, which would be misleading. */
function checkInterpreter(name: string, file: string): ResolvedCommand | SpawnFailure {
  const interpreter = readInterpreter(file)
  if (interpreter === undefined || inspect(interpreter) === 'executable') return { file }
  return fail('not_executable', name, `its interpreter ${JSON.stringify(interpreter)} cannot be executed`)
}

function readInterpreter(file: string): string | undefined {
  const head = readHead(file)
  if (!head.startsWith('#!')) return undefined
  const words = head
    .slice(2)
    .split('\n', 1)[0]
    // The kernel splits at nothing else: a carriage return is part of the name.
    ?.split(/[ \t]+/)
    .filter((word) => word !== '')
  const path = words?.[0]
  return path === undefined || path === '' ? undefined : path
}

function readHead(file: string): string {
  let fd: number
  try {
    fd = openSync(file, 'r')
  } catch {
    // A file that is executable but not readable is no script.
    return ''
  }
  try {
    const head = Buffer.alloc(SHEBANG_BYTES)
    return head.toString('latin1', 0, readSync(fd, head, 0, SHEBANG_BYTES, 0))
  } finally {
    closeSync(fd)
  }
}

function isDirectory(path: string): boolean {
  try {
    return statSync(path, { throwIfNoEntry: false })?.isDirectory() ?? false
  } catch {
    // ENOTDIR, ELOOP or EACCES: it cannot be entered.
    return false
  }
}
