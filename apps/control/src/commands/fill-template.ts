import { type CommandTemplate, findValueProblem, replacePlaceholders } from '@sandwire/operator-settings'
import { SandwireError } from '@sandwire/protocol'

/** A template with its holes filled: a command that nobody but the operator could have written. */
export interface FilledTemplate {
  readonly template: string
  readonly cmd: string
  readonly args: readonly string[]
  readonly mode: 'pipe' | 'pty'
  readonly cwd?: string
  readonly env: Readonly<Record<string, string>>
}

/** Names the parameter and never its value. */
function bad(name: string, why: string): SandwireError {
  const shown = name.replace(/[^A-Za-z0-9_]/g, '').slice(0, 32)
  return new SandwireError('bad_template', `Cannot use parameter "${shown}" of the template: ${why}`)
}

function valueOf(
  parameter: CommandTemplate['params'][number],
  given: readonly (readonly [string, string])[],
): string {
  const { name, fallback } = parameter
  const [mine, ...more] = given.filter(([key]) => key === name)
  if (more.length > 0) throw bad(name, 'given twice')
  const value = mine?.[1] ?? fallback
  if (value === undefined) throw bad(name, 'not given')
  const fault = findValueProblem(parameter, value)
  if (fault !== undefined) throw bad(name, fault)
  return value
}

/** Puts checked values into a template. A value stays within the argument it was put into, whatever it holds. */
export function fillTemplate(
  template: CommandTemplate,
  given: readonly (readonly [string, string])[],
): FilledTemplate {
  const { id, argv, params, mode, cwd, env } = template
  for (const [name] of given)
    if (!params.some((parameter) => parameter.name === name)) throw bad(name, 'it has none of this name')
  const values = new Map(params.map((parameter) => [parameter.name, valueOf(parameter, given)] as const))
  const [cmd = '', ...args] = argv.map((argument) =>
    replacePlaceholders(argument, (name) => values.get(name) ?? ''),
  )
  return { template: id, cmd, args, mode, env: { ...env }, ...(cwd === undefined ? {} : { cwd }) }
}
