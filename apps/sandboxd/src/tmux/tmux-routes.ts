import { respondEvents, type ServerSentEvent } from '../http/event-stream.ts'
import { readJson } from '../http/request-body.ts'
import { respondJson } from '../http/respond.ts'
import type { WorkspaceCall } from '../workspace/routes/route.ts'
import { parseAction } from './actions.ts'
import type { TmuxService } from './tmux-service.ts'
import type { TmuxView } from './view.ts'

interface Dependencies {
  readonly workspace: { readonly tmux: TmuxService }
}

export const TMUX_HANDLERS = {
  'GET /workspace/tmux': showTmux,
  'POST /workspace/tmux': changeTmux,
  'GET /workspace/tmux/events': watchTmux,
}

/** `GET /workspace/tmux` */
async function showTmux(_: WorkspaceCall, { workspace }: Dependencies): Promise<Response> {
  return respondJson(await workspace.tmux.view())
}

/** `POST /workspace/tmux`: one action; returns the view after it, and the pane that it made. */
async function changeTmux({ request }: WorkspaceCall, { workspace }: Dependencies): Promise<Response> {
  return respondJson(await workspace.tmux.act(parseAction(await readJson(request))))
}

/** `GET /workspace/tmux/events`: the view now and after each change. A slow client misses views, never the last one. */
async function watchTmux({ request }: WorkspaceCall, { workspace }: Dependencies): Promise<Response> {
  let latest: TmuxView | undefined
  let wake = Promise.withResolvers<void>()
  const stop = await workspace.tmux.watch((view) => {
    latest = view
    wake.resolve()
  })
  let isClosed = false
  const close = (): void => {
    isClosed = true
    stop()
    wake.resolve()
  }
  const next = async (): Promise<ServerSentEvent | undefined> => {
    await wake.promise
    wake = Promise.withResolvers<void>()
    const view = latest
    latest = undefined
    return isClosed || view === undefined ? undefined : { event: 'state', data: view }
  }
  return respondEvents({ next, close }, request)
}
