import { SandwireError } from '@sandwire/protocol'
import type { CommitRequest } from '../git/commit.ts'
import { checkPath } from '../git/names.ts'
import { JsonFields } from './json-fields.ts'

/** Most paths of one request. */
const MAX_PATHS = 10_000
const MAX_MESSAGE_CHARS = 64 * 1024
const MAX_NAME_CHARS = 256

function bad(name: string, why: string): SandwireError {
  return new SandwireError('bad_request', `Cannot use field "${name}": ${why}`)
}

function readPaths(fields: JsonFields): readonly string[] {
  const paths = fields.value('paths')
  if (!Array.isArray(paths) || paths.length === 0 || paths.length > MAX_PATHS)
    throw bad('paths', `expected a list of 1 to ${MAX_PATHS} paths`)
  return paths.map((path: unknown) => {
    if (typeof path !== 'string') throw bad('paths', 'expected texts')
    return checkPath(path)
  })
}

/** The repository that a body means, the workspace's own unless it says. */
function readRepo(fields: JsonFields): string {
  return fields.value('repo') === undefined ? '.' : checkPath(fields.text('repo'))
}

/** Body of staging and unstaging. */
export async function readPathsBody(
  request: Request,
): Promise<{ readonly repo: string; readonly paths: readonly string[] }> {
  const fields = await JsonFields.read(request, ['repo', 'paths'])
  return { repo: readRepo(fields), paths: readPaths(fields) }
}

/** Body of discarding. */
export async function readDiscardBody(
  request: Request,
): Promise<{ readonly repo: string; readonly paths: readonly string[]; readonly untracked: boolean }> {
  const fields = await JsonFields.read(request, ['repo', 'paths', 'untracked'])
  return { repo: readRepo(fields), paths: readPaths(fields), untracked: fields.flag('untracked') }
}

/** Body of committing. */
export async function readCommitBody(request: Request): Promise<CommitRequest & { readonly repo: string }> {
  const fields = await JsonFields.read(request, ['repo', 'message', 'author', 'amend'])
  const message = fields.text('message')
  if (message.trim() === '' || message.includes('\0'))
    throw bad('message', 'expected a text that says something')
  if (message.length > MAX_MESSAGE_CHARS) throw bad('message', `longer than ${MAX_MESSAGE_CHARS} characters`)
  return { repo: readRepo(fields), message, author: readAuthor(fields), amend: fields.flag('amend') }
}

function readAuthor(fields: JsonFields): CommitRequest['author'] {
  const author = fields.value('author')
  if (author === undefined) return undefined
  const known = new Map<string, unknown>(
    typeof author === 'object' && author !== null ? Object.entries(author) : [],
  )
  const [name, email] = [known.get('name'), known.get('email')]
  if (!isPersonText(name) || !isPersonText(email) || known.size > 2)
    throw bad('author', 'expected an object with name and email')
  return { name, email }
}

/** What stands in a commit's head: one line without the brackets that end it. */
function isPersonText(value: unknown): value is string {
  return (
    typeof value === 'string' &&
    value.trim() !== '' &&
    value.length <= MAX_NAME_CHARS &&
    !/[\p{C}<>]/u.test(value)
  )
}
