import type { RouteConfig } from '@hono/zod-openapi'
import type { ProxyRoute } from '../workspace-proxy/route.ts'
import { json } from './endpoint.ts'
import { detailBody, errorBody } from './schemas.ts'

/** The part of JSON Schema that workspace bodies use. */
interface BodySchema {
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

/** A body with exactly these fields. */
function body(required: Record<string, BodySchema>, optional: Record<string, BodySchema> = {}): BodySchema {
  return {
    type: 'object',
    properties: { ...required, ...optional },
    required: Object.keys(required),
    additionalProperties: false,
  }
}

/** A body of the compat API, which ignores other fields. */
function texts(descriptions: Readonly<Record<string, string>>): BodySchema {
  const fields = Object.entries(descriptions).map(([name, description]) => [name, text(description)] as const)
  return { type: 'object', properties: Object.fromEntries(fields), required: Object.keys(descriptions) }
}

const FROM_TO = body(
  { from: text('Path in the workspace'), to: text('Path in the workspace') },
  { replace: flag('Replace an existing file') },
)
const REPO = { repo: text('Folder of the repository; default: the workspace') }
const PATHS: BodySchema = {
  type: 'array',
  items: { type: 'string' },
  minItems: 1,
  maxItems: 10_000,
  description: 'Paths in the repository',
}

/** Schema of each body by upstream path, for the OpenAPI document; sandboxd validates the body. */
const BODIES: Readonly<Record<string, BodySchema>> = {
  '/workspace/mkdir': body(
    { path: text('Path in the workspace') },
    { parents: flag('Create parent folders; succeed if it exists') },
  ),
  '/workspace/rename': FROM_TO,
  '/workspace/copy': FROM_TO,
  '/workspace/uploads/:id': body(
    {
      path: text('Path of the file'),
      size: { type: 'integer', minimum: 0, description: 'Expected size in bytes' },
    },
    {
      mode: { type: 'integer', minimum: 0, maximum: 0o777, description: 'Permissions, as in `stat`' },
      mtimeMs: { type: 'number', description: 'Modification time, in milliseconds since 1970' },
      ifMatch: text('Only if the existing file has this ETag; "*": only if it exists'),
    },
  ),
  '/workspace/git/stage': body({ paths: PATHS }, REPO),
  '/workspace/git/unstage': body({ paths: PATHS }, REPO),
  '/workspace/git/discard': body(
    { paths: PATHS },
    { untracked: flag('Also remove untracked files'), ...REPO },
  ),
  '/workspace/git/commit': body(
    { message: text('At most 65,536 characters') },
    {
      author: {
        ...body({ name: text('One line'), email: text('One line') }),
        description: "Default: the repository's own",
      },
      amend: flag('Replace the last commit'),
      ...REPO,
    },
  ),
  '/workspace/tmux': body(
    {
      type: text(
        'new_window, split, select_window, select_pane, resize_window, resize_pane, zoom_pane, swap_panes, rename_window, rename_pane, kill_window, kill_pane or kill_server',
      ),
    },
    {
      window: text('Window, such as @1'),
      pane: text('Pane, such as %3'),
      other: text('The pane to swap with'),
      direction: text('Where the new pane is: left, right, up or down'),
      name: text('Name of the window, or title of the pane'),
      cwd: text('Absolute path of the folder to start in'),
      cols: { type: 'integer', minimum: 1, maximum: 1_000, description: 'Columns' },
      rows: { type: 'integer', minimum: 1, maximum: 1_000, description: 'Rows' },
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

function bodySchemaOf(upstream: string): BodySchema {
  const found = BODIES[upstream]
  if (found === undefined) throw new Error(`No body schema for ${upstream}`)
  return found
}

const METHODS = { GET: 'get', PUT: 'put', POST: 'post', DELETE: 'delete' } as const

const TEXT = { type: 'string' } as const

function inPath(name: string, description: string) {
  return { name, in: 'path' as const, required: true, description, schema: TEXT }
}

function inQuery(name: string, description: string, isRepeatable = false) {
  const schema = isRepeatable ? { type: 'array' as const, items: TEXT } : TEXT
  return { name, in: 'query' as const, required: false, description, schema }
}

function parametersOf({ path, parameters, repeatable, api }: ProxyRoute) {
  return [
    ...(path.includes(':sandbox') ? [inPath('sandbox', 'Id or name.')] : []),
    ...(path.includes(':id') ? [inPath('id', '32 hex digits.')] : []),
    ...(api === 'compat' ? [inQuery('sandbox', 'Id or name; default: the default sandbox.')] : []),
    ...Object.entries(parameters).map(([name, text]) => inQuery(name, text, repeatable.includes(name))),
  ]
}

function bodyOf({ body: { kind, maxBytes }, upstream }: ProxyRoute): Pick<RouteConfig, 'requestBody'> {
  if (kind === 'nothing') return {}
  const isBytes = kind === 'bytes'
  return {
    requestBody: {
      required: true,
      description: `At most ${maxBytes} bytes.`,
      content: isBytes
        ? { 'application/octet-stream': { schema: { type: 'string', format: 'binary' } } }
        : { 'application/json': { schema: bodySchemaOf(upstream) } },
    },
  }
}

/** Describes a proxied route for the OpenAPI document. */
export function describeRoute(route: ProxyRoute): RouteConfig {
  const { method, path, summary, response, api } = route
  return {
    method: METHODS[method],
    path: path.replaceAll(/:(\w+)/g, '{$1}'),
    summary,
    parameters: parametersOf(route),
    ...bodyOf(route),
    responses: {
      200: { description: summary, content: { [response.type]: { schema: {} } } },
      default: json(
        api === 'native' ? errorBody : detailBody,
        api === 'native' ? 'Error' : 'Error; its code is in x-sandwire-code',
      ),
    },
  }
}
