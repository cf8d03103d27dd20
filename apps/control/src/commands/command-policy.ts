import {
  commandName,
  type CommandSettings,
  type CommandTemplate,
  findValueProblem,
  replacePlaceholders,
  SHELLS,
} from '@sandwire/operator-settings'
import { findRestrictedVariable, SandwireError } from '@sandwire/protocol'
import type { Scope } from '../auth/identity.ts'

type Caller = { readonly scopes: readonly Scope[] }
type Parameters = readonly (readonly [string, string])[]

/** A template with its parameters filled in: a command line that only the operator defines. */
export interface FilledTemplate {
  readonly template: string
  readonly cmd: string
  readonly args: readonly string[]
  readonly mode: 'pipe' | 'pty'
  readonly cwd?: string
  readonly env: Readonly<Record<string, string>>
}

/** Names the parameter, never its value. */
function badTemplate(name: string, problem: string): SandwireError {
  const shown = name.replace(/[^A-Za-z0-9_]/g, '').slice(0, 32)
  return new SandwireError('bad_template', `Cannot use parameter "${shown}" of the template: ${problem}`)
}

function valueOf(parameter: CommandTemplate['params'][number], given: Parameters): string {
  const { name, fallback } = parameter
  const [first, ...more] = given.filter(([key]) => key === name)
  if (more.length > 0) throw badTemplate(name, 'given twice')
  const value = first?.[1] ?? fallback
  if (value === undefined) throw badTemplate(name, 'missing')
  const problem = findValueProblem(parameter, value)
  if (problem !== undefined) throw badTemplate(name, problem)
  return value
}

/** Fills in validated values. A value never leaves the argument that its placeholder is in. */
function fillTemplate(template: CommandTemplate, given: Parameters): FilledTemplate {
  const { id, argv, params, mode, cwd, env } = template
  for (const [name] of given)
    if (!params.some((parameter) => parameter.name === name)) throw badTemplate(name, 'unknown')
  const values = new Map(params.map((parameter) => [parameter.name, valueOf(parameter, given)] as const))
  const [cmd = '', ...args] = argv.map((argument) =>
    replacePlaceholders(argument, (name) => values.get(name) ?? ''),
  )
  return { template: id, cmd, args, mode, env: { ...env }, ...(cwd === undefined ? {} : { cwd }) }
}

/** Decides which commands a caller may start. Access to the sandbox is checked by its object. */
export class CommandPolicy {
  readonly #settings: CommandSettings

  constructor(settings: CommandSettings) {
    this.#settings = settings
  }

  get templates(): readonly CommandTemplate[] {
    return this.#settings.templates
  }

  /** True if any caller may run commands other than templates. */
  get allowsFree(): boolean {
    return this.#settings.free !== 'nobody'
  }

  /** Throws unless the caller may run this command; undefined is the sandbox's shell. */
  checkFree({ scopes }: Caller, cmd: string | undefined): void {
    if (!scopes.includes('exec'))
      throw new SandwireError(
        'forbidden',
        'Cannot run this command: the credential does not have the scope "exec"',
      )
    if (!this.allowsFree)
      throw new SandwireError('forbidden', 'Cannot run this command: this server runs templates only')
    if (this.#isBlocked(cmd))
      throw new SandwireError('command_blocked', 'Cannot run this command: blocked by the operator')
  }

  /** The command of a template; throws `bad_template`. */
  fill(id: string, given: Parameters): FilledTemplate {
    const template = this.#settings.templates.find((each) => each.id === id)
    if (template === undefined) throw new SandwireError('bad_template', 'No template has this id')
    return fillTemplate(template, given)
  }

  #isBlocked(cmd: string | undefined): boolean {
    const { blocked } = this.#settings
    // The sandbox's shell is not known here, so blocking any shell blocks the default one.
    return cmd === undefined
      ? blocked.some((name) => SHELLS.includes(name))
      : blocked.includes(commandName(cmd))
  }
}

/**
 * Throws unless the caller may give a sandbox this environment. A shell or a dynamic loader executes what some variables name,
 * also for templates, so these need the right to run any command.
 */
export function checkEnvironment(
  { scopes }: Caller,
  env: Readonly<Record<string, string>>,
  { free }: Pick<CommandSettings, 'free'>,
): void {
  if (scopes.includes('exec') && free !== 'nobody') return
  const name = findRestrictedVariable(env)
  if (name === undefined) return
  const problem =
    free === 'nobody' ? 'this server runs templates only' : 'the credential does not have the scope "exec"'
  throw new SandwireError('forbidden', `Cannot set "${name}": ${problem}`)
}

/** Attach parameters that a template defines and a caller must not send. */
const TEMPLATE_PARAMETERS = ['session', 'cmd', 'arg', 'pane', 'mode', 'cwd', 'env'] as const

function badParameter(name: string, problem: string): SandwireError {
  return new SandwireError('bad_request', `Cannot use parameter "${name}": ${problem}`)
}

function splitParameter(text: string): readonly [string, string] {
  const at = text.indexOf('=')
  if (at < 0) throw badParameter('param', 'expected NAME=VALUE')
  return [text.slice(0, at), text.slice(at + 1)]
}

/** Replaces `template` and `param` in an attach query by the template's command; undefined if the query names no template. */
export function expandTemplate(
  query: URLSearchParams,
  policy: CommandPolicy,
): { readonly query: URLSearchParams; readonly filled: FilledTemplate } | undefined {
  const [id, ...more] = query.getAll('template')
  if (id === undefined) {
    if (query.has('param')) throw badParameter('param', 'no template was given')
    return undefined
  }
  if (more.length > 0) throw badParameter('template', 'given twice')
  const refused = TEMPLATE_PARAMETERS.find((name) => query.has(name))
  if (refused !== undefined) throw badParameter(refused, 'a template was given')
  const filled = policy.fill(id, query.getAll('param').map(splitParameter))
  const expanded = new URLSearchParams([...query].filter(([name]) => name !== 'template' && name !== 'param'))
  expanded.append('cmd', filled.cmd)
  for (const arg of filled.args) expanded.append('arg', arg)
  expanded.append('mode', filled.mode)
  if (filled.cwd !== undefined) expanded.append('cwd', filled.cwd)
  return { query: expanded, filled }
}
