import { request, requestJson } from './request.ts'

/** A cell of a window's layout, in characters. */
export type LayoutCell = {
  readonly cols: number
  readonly rows: number
  readonly left: number
  readonly top: number
} & (
  | { readonly kind: 'pane'; readonly pane: string }
  | { readonly kind: 'row' | 'column'; readonly cells: readonly LayoutCell[] }
)

export interface TmuxPane {
  readonly id: string
  readonly title: string
  readonly command: string
  readonly isActive: boolean
  readonly isInMode: boolean
}

export interface TmuxWindow {
  readonly id: string
  readonly index: number
  readonly name: string
  readonly isActive: boolean
  readonly isZoomed: boolean
  readonly layout: LayoutCell
  readonly panes: readonly TmuxPane[]
}

export type TmuxState =
  | { readonly state: 'missing' }
  | { readonly state: 'stopped' }
  | { readonly state: 'running'; readonly windows: readonly TmuxWindow[] }

export type TmuxAction = Readonly<Record<string, string | number>> & { readonly type: string }

function tmuxUrl(sandbox: string, tail = ''): string {
  return `/api/sandboxes/${encodeURIComponent(sandbox)}/tmux${tail}`
}

export function readTmux(sandbox: string): Promise<TmuxState> {
  return requestJson<TmuxState>(tmuxUrl(sandbox))
}

export async function changeTmux(sandbox: string, action: TmuxAction): Promise<void> {
  await request(tmuxUrl(sandbox), { method: 'POST', json: action })
}

/**
 * Calls back with the state now and after each change, until the returned function is called. The browser reconnects; `onEnd` is
 * called when it gives up, as after an error response.
 */
export function watchTmux(
  sandbox: string,
  onState: (state: TmuxState) => void,
  onEnd: () => void,
): () => void {
  const source = new EventSource(tmuxUrl(sandbox, '/events'))
  source.addEventListener('state', (event: MessageEvent<string>) =>
    onState(JSON.parse(event.data) as TmuxState),
  )
  source.addEventListener('error', () => {
    if (source.readyState === EventSource.CLOSED) onEnd()
  })
  return () => source.close()
}
