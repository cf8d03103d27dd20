import { toEventStream } from '../watch/event-stream.ts'
import { Query } from './query.ts'
import type { Workspace, WorkspaceCall } from './route.ts'

export const WATCH_HANDLERS = { 'GET /workspace/watch': watchFolder }

/** `GET /workspace/watch`: server-sent events until the client goes. */
async function watchFolder(
  { url, request }: WorkspaceCall,
  { workspace }: { readonly workspace: Workspace },
): Promise<Response> {
  const query = new Query(url)
  const watching = await workspace.watches.open(query.text('path', '.'), query.flag('recursive'))
  request.signal.addEventListener('abort', watching.close, { once: true })
  if (request.signal.aborted) watching.close()
  return new Response(toEventStream(watching), {
    headers: {
      'content-type': 'text/event-stream; charset=utf-8',
      'cache-control': 'no-store',
      'x-content-type-options': 'nosniff',
    },
  })
}
