import { type Words, Wrong } from './words.ts'

/** Options that a template has to do with. */
type TemplateWords = Pick<
  Words<{
    template: 'once'
    param: 'repeatable'
    cmd: 'once'
    cwd: 'once'
    env: 'repeatable'
    tty: 'flag'
    'no-tty': 'flag'
  }>,
  'all' | 'one' | 'has' | 'command'
>

/** A command that the server has ready, and what it is told. */
export interface ChosenTemplate {
  readonly template: string | undefined
  readonly params: Readonly<Record<string, string>>
}

/** What a template says itself. */
const SAID_BY_TEMPLATE = ['cwd', 'env'] as const

/** Reads which template is meant, and what it is told. Throws `Wrong`. */
export function readTemplate(words: TemplateWords): ChosenTemplate {
  const template = words.one('template')
  const given = words.all('param')
  if (template === undefined && given.length > 0) throw new Wrong('Option "--param" needs "--template"')
  if (template !== undefined && (words.command ?? words.one('cmd')) !== undefined)
    throw new Wrong('Give a command or a template, not both')
  const extra =
    template === undefined ? undefined : SAID_BY_TEMPLATE.find((name) => words.one(name) !== undefined)
  if (extra !== undefined) throw new Wrong(`Option "--${extra}" does not go with "--template", which says it`)
  if (template !== undefined && (words.has('tty') || words.has('no-tty')))
    throw new Wrong("Whether there is a terminal is the template's to say: leave --tty and --no-tty out")
  const params = new Map<string, string>()
  for (const word of given) {
    const at = word.indexOf('=')
    if (at < 1) throw new Wrong('Option "--param" takes NAME=VALUE', 'sbx-stdio templates')
    const name = word.slice(0, at)
    if (params.has(name)) throw new Wrong(`Parameter "${name}" is given twice`)
    params.set(name, word.slice(at + 1))
  }
  return { template, params: Object.fromEntries(params) }
}
