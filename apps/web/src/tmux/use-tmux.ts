import { useEffect, useState } from 'react'
import { ApiError } from '../api/request.ts'
import { readTmux, type TmuxState, watchTmux } from '../api/tmux.ts'

export type TmuxLoad =
  | { readonly kind: 'loading' }
  | { readonly kind: 'failed'; readonly message: string }
  | { readonly kind: 'ready'; readonly tmux: TmuxState }

/** Until the next attempt after an error. */
const RETRY_MS = 2_000

/** The sandbox's tmux, live. Asked for first, because an event source cannot say why it failed. */
export function useTmux(sandbox: string): TmuxLoad {
  const [load, setLoad] = useState<TmuxLoad>({ kind: 'loading' })
  useEffect(() => {
    let stop: (() => void) | undefined
    let timer: ReturnType<typeof setTimeout> | undefined
    let isOver = false
    const retry = (): void => {
      if (!isOver) timer = setTimeout(() => void open(), RETRY_MS)
    }
    const show = (tmux: TmuxState): void => setLoad({ kind: 'ready', tmux })
    const open = async (): Promise<void> => {
      try {
        const tmux = await readTmux(sandbox)
        if (isOver) return
        show(tmux)
        stop = watchTmux(sandbox, show, retry)
      } catch (caught) {
        const message = caught instanceof ApiError ? caught.message : String(caught)
        if (!isOver) setLoad((now) => (now.kind === 'ready' ? now : { kind: 'failed', message }))
        retry()
      }
    }
    void open()
    return () => {
      isOver = true
      clearTimeout(timer)
      stop?.()
    }
  }, [sandbox])
  return load
}
