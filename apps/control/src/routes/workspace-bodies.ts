/** A JSON schema as far as bodies of the workspace need it. */
export interface BodySchema {
  readonly type: 'string' | 'boolean' | 'integer' | 'number' | 'array' | 'object'
  readonly description?: string
  readonly minimum?: number
  readonly maximum?: number
  readonly minItems?: number
  readonly maxItems?: number
  readonly items?: BodySchema
  readonly properties?: Readonly<Record<string, BodySchema>>
  readonly required?: string[]
  readonly additionalProperties?: false
}

const text = (description: string): BodySchema => ({ type: 'string', description })
const flag = (description: string): BodySchema => ({ type: 'boolean', description })

/** A body of these fields and no others; those after the first argument may be left out. */
function body(required: Record<string, BodySchema>, optional: Record<string, BodySchema> = {}): BodySchema {
  return {
    type: 'object',
    properties: { ...required, ...optional },
    required: Object.keys(required),
    additionalProperties: false,
  }
}

/** A body of the contract, whose other fields are not looked at. */
function texts(descriptions: Readonly<Record<string, string>>): BodySchema {
  const fields = Object.entries(descriptions).map(([name, description]) => [name, text(description)] as const)
  return { type: 'object', properties: Object.fromEntries(fields), required: Object.keys(descriptions) }
}

const FROM_TO = body(
  { from: text('Path in the workspace'), to: text('Path in the workspace') },
  { replace: flag('Also when something is there') },
)
const REPO = { repo: text('Folder of the repository; the workspace when absent') }
const PATHS: BodySchema = {
  type: 'array',
  items: { type: 'string' },
  minItems: 1,
  maxItems: 10_000,
  description: 'Paths in the repository',
}

/** What a request is to say, by what it is sent to; sandboxd judges it. */
const BODIES: Readonly<Record<string, BodySchema>> = {
  '/workspace/mkdir': body(
    { path: text('Path in the workspace') },
    { parents: flag('With the folders that lead to it, and without a word when it is there') },
  ),
  '/workspace/rename': FROM_TO,
  '/workspace/copy': FROM_TO,
  '/workspace/uploads/:id': body(
    {
      path: text('Path of the file'),
      size: { type: 'integer', minimum: 0, description: 'Bytes that it has to have' },
    },
    {
      mode: { type: 'integer', minimum: 0, maximum: 0o777, description: 'Permissions, as `stat` tells them' },
      mtimeMs: { type: 'number', description: 'Time of change, in milliseconds since 1970' },
      ifMatch: text('Only when the file that is there has this etag; "*": when there is one'),
    },
  ),
  '/workspace/git/stage': body({ paths: PATHS }, REPO),
  '/workspace/git/unstage': body({ paths: PATHS }, REPO),
  '/workspace/git/discard': body(
    { paths: PATHS },
    { untracked: flag('Also files that git does not know: they are removed'), ...REPO },
  ),
  '/workspace/git/commit': body(
    { message: text('At most 65,536 characters') },
    {
      author: {
        ...body({ name: text('One line'), email: text('One line') }),
        description: "The repository's own when absent",
      },
      amend: flag('Instead of the last commit'),
      ...REPO,
    },
  ),
  '/workspace/compat/file': texts({ content: 'The whole text' }),
  '/workspace/compat/file/rename': texts({
    old_path: 'Path in the workspace',
    new_path: 'Path in the workspace',
  }),
  '/workspace/compat/file/move': texts({
    src_path: 'Path in the workspace',
    dest_dir: 'Folder in the workspace',
  }),
}

/** What the body of a request that goes to `upstream` is to be; throws when nobody wrote it down. */
export function bodySchemaOf(upstream: string): BodySchema {
  const found = BODIES[upstream]
  if (found === undefined) throw new Error(`Nobody wrote down what ${upstream} takes`)
  return found
}
