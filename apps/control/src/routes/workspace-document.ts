import type { RouteConfig } from '@hono/zod-openapi'
import type { ProxyRoute } from '../workspace-proxy/route.ts'
import { json } from './endpoint.ts'
import { detailBody, errorBody } from './schemas.ts'
import { bodySchemaOf } from './workspace-bodies.ts'

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
    ...(api === 'compat' ? [inQuery('sandbox', 'Id or name; the usual one when absent.')] : []),
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

/** A route of the gateway for the document; what it takes is judged by the gateway itself. */
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
        api === 'native' ? 'What went wrong' : 'What went wrong; its code is in x-sandwire-code',
      ),
    },
  }
}
