import { SandwireError } from '@sandwire/protocol'
import type { CommandPolicy } from './command-policy.ts'
import type { FilledTemplate } from './fill-template.ts'

/** What a template says itself, so that a caller cannot. */
const SAID_BY_TEMPLATE = ['session', 'cmd', 'arg', 'mode', 'cwd', 'env'] as const

function bad(name: string, why: string): SandwireError {
  return new SandwireError('bad_request', `Cannot use parameter "${name}": ${why}`)
}

/** `K=V`, split at the first sign. */
function splitParameter(text: string): readonly [string, string] {
  const at = text.indexOf('=')
  if (at < 0) throw bad('param', 'expected NAME=VALUE')
  return [text.slice(0, at), text.slice(at + 1)]
}

/** An attach's query with what its template says in place of it; undefined when it names none. */
export function expandTemplate(
  query: URLSearchParams,
  policy: CommandPolicy,
): { readonly query: URLSearchParams; readonly filled: FilledTemplate } | undefined {
  const [id, ...more] = query.getAll('template')
  if (id === undefined) {
    if (query.has('param')) throw bad('param', 'there is no template')
    return undefined
  }
  if (more.length > 0) throw bad('template', 'given twice')
  const refused = SAID_BY_TEMPLATE.find((name) => query.has(name))
  if (refused !== undefined) throw bad(refused, 'a template was given')
  const filled = policy.fill(id, query.getAll('param').map(splitParameter))
  const expanded = new URLSearchParams([...query].filter(([name]) => name !== 'template' && name !== 'param'))
  expanded.append('cmd', filled.cmd)
  for (const arg of filled.args) expanded.append('arg', arg)
  expanded.append('mode', filled.mode)
  if (filled.cwd !== undefined) expanded.append('cwd', filled.cwd)
  return { query: expanded, filled }
}
