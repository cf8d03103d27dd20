import { isRecord, parseRecord } from '../json.ts'

/** Settings of the program in a terminal: no traffic but to the model API, and no updates. */
const ENV: Readonly<Record<string, string>> = {
  CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: '1',
  DISABLE_TELEMETRY: '1',
  DISABLE_ERROR_REPORTING: '1',
  DISABLE_AUTOUPDATER: '1',
  CLAUDE_CODE_ADDITIONAL_DIRECTORIES_CLAUDE_MD: '1',
  /** The program refuses to skip permissions as root unless a variable says that it runs in a sandbox. */
  IS_SANDBOX: '1',
}

/** Arguments that choose a permission mode. */
const PERMISSION_MODE = /^--(permission-mode(=|$)|dangerously-skip-permissions$)/
const SETTINGS = /^--settings(=|$)/
const SOURCES = /^--setting-sources(=|$)/

/** Arguments and environment of Claude Code's own interface. It asks before it uses tools unless an argument chooses otherwise: settings of a repository do not. */
export function claudeTui(
  program: string,
  args: readonly string[],
  {
    access,
    scratch,
    settings,
  }: {
    /** URL and token of the gateway, in the program's variables. */
    readonly access: Readonly<Record<string, string>>
    /** An empty folder of the user, mode 0700. */
    readonly scratch: string
    /** File with `claudeSettings` of `access`. */
    readonly settings: string
  },
): { readonly argv: readonly [string, ...string[]]; readonly env: Readonly<Record<string, string>> } {
  const own: string[] = []
  // As in runs that ask. The folder counts as trusted, so the program would not ask before hooks of a repository's settings either.
  if (!args.some((arg) => SOURCES.test(arg))) own.push('--setting-sources=user', '--add-dir=.')
  if (!args.some((arg) => PERMISSION_MODE.test(arg))) own.push('--permission-mode=default')
  if (!args.some((arg) => SETTINGS.test(arg))) own.push(`--settings=${settings}`)
  return { argv: [program, ...own, ...args], env: { ...ENV, CLAUDE_CODE_TMPDIR: scratch, ...access } }
}

/**
 * The content of `~/.claude.json` with which Claude Code begins at its prompt in a folder: without choice of a theme, sign-in and
 * the question whether the folder is trusted. Undefined: it needs no change, or is not the program's own.
 */
export function seedClaudeSettings(present: string | undefined, folder: string): string | undefined {
  const settings = present === undefined ? {} : parseRecord(present)
  if (settings === undefined) return undefined
  const { projects = {}, hasCompletedOnboarding } = settings
  if (!isRecord(projects)) return undefined
  const project = projects[folder] ?? {}
  if (!isRecord(project)) return undefined
  if (hasCompletedOnboarding === true && project['hasTrustDialogAccepted'] === true) return undefined
  const trusted = { ...projects, [folder]: { ...project, hasTrustDialogAccepted: true } }
  return JSON.stringify({ ...settings, hasCompletedOnboarding: true, projects: trusted }, undefined, 2)
}
