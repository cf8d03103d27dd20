import {
  closeSync,
  constants,
  fstatSync,
  mkdtempSync,
  openSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import path from 'node:path'
import { claudeSettings, claudeTui, seedClaudeSettings } from '@sandwire/agent'
import type { AgentTui } from '@sandwire/internal-api'
import type { AsUser } from '../processes/run-as.ts'

/** Claude Code's own are far smaller; a larger file is left as it is. */
const MAX_SETTINGS_BYTES = 16 * 1024 * 1024
const MISSING = 'ENOENT'

export interface TuiCommand {
  readonly argv: readonly [string, ...string[]]
  readonly env: Readonly<Record<string, string>>
  /** Removes its temporary files. */
  readonly close: () => void
}

export interface TuiOptions {
  readonly asUser: AsUser
  /** Parent of the folder for temporary files. */
  readonly temporaryFolder: string
  readonly home: string
  readonly cwd: string
}

/** Prepares an agent's own interface: its command and environment, and the files that it needs, as the user. */
export function openTui(
  { driver, program, env }: AgentTui,
  args: readonly string[],
  { asUser, temporaryFolder, home, cwd }: TuiOptions,
): TuiCommand {
  if (driver === 'acp') return { argv: [program, ...args], env, close: () => undefined }
  return asUser(() => {
    seedClaude(home, cwd)
    const scratch = mkdtempSync(path.join(temporaryFolder, 'agent-'))
    const settings = path.join(scratch, 'settings.json')
    writeFileSync(settings, claudeSettings(env), { mode: 0o600 })
    const close = (): void => asUser(() => rmSync(scratch, { recursive: true, force: true }))
    return { ...claudeTui(program, args, { access: env, scratch, settings }), close }
  })
}

/** Options with which the interfaces of Claude Code and OpenCode name a conversation. */
const CONTINUES: ReadonlySet<string> = new Set(['--resume', '-r', '--session', '-s', '--session-id'])
/** A short one with its value attached. */
const ATTACHED = /^(-[rs])([^=].*)$/

/** The conversation that the arguments of an interface name; undefined: none. */
export function conversationOf(args: readonly string[]): string | undefined {
  for (const [at, arg] of args.entries()) {
    const [name = '', value = args[at + 1]] = ATTACHED.exec(arg)?.slice(1) ?? arg.split('=', 2)
    if (CONTINUES.has(name) && value !== undefined && !value.startsWith('-')) return value
  }
  return undefined
}

/** Changes the settings of Claude Code in the user's home, so that it begins at its prompt. */
export function seedClaude(home: string, folder: string): void {
  const file = path.join(home, '.claude.json')
  const present = readSettings(file)
  if (present.kind === 'unusable') return
  const seeded = seedClaudeSettings(present.text, folder)
  if (seeded === undefined) return
  const written = `${file}.${crypto.randomUUID()}`
  writeFileSync(written, seeded, { mode: 0o600, flag: 'wx' })
  renameSync(written, file)
}

type Settings = { readonly kind: 'usable'; readonly text: string | undefined } | { readonly kind: 'unusable' }

/** The text of a regular file. Never waits for a FIFO or follows a symlink, which the user may have put there. */
function readSettings(file: string): Settings {
  let fd: number
  try {
    fd = openSync(file, constants.O_RDONLY | constants.O_NONBLOCK | constants.O_NOFOLLOW)
  } catch (error) {
    const isMissing = error instanceof Error && 'code' in error && error.code === MISSING
    return isMissing ? { kind: 'usable', text: undefined } : { kind: 'unusable' }
  }
  try {
    const found = fstatSync(fd)
    if (!found.isFile() || found.size > MAX_SETTINGS_BYTES) return { kind: 'unusable' }
    return { kind: 'usable', text: readFileSync(fd, 'utf8') }
  } finally {
    closeSync(fd)
  }
}
