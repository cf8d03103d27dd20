import { useEffect, useState } from 'react'
import { ApiError } from '../api/request.ts'
import { readTmux, type TmuxState, watchTmux } from '../api/tmux.ts'

export type TmuxLoad =
  | { readonly kind: 'loading' }
  | { readonly kind: 'failed'; readonly message: string }
  | { readonly kind: 'ready'; readonly tmux: TmuxState }

/** The sandbox's tmux, live. Asked for first, because an event source cannot say why it failed. */
export function useTmux(sandbox: string): TmuxLoad {
  const [load, setLoad] = useState<TmuxLoad>({ kind: 'loading' })
  useEffect(() => {
    let stop: (() => void) | undefined
    let isOver = false
    const show = (tmux: TmuxState): void => setLoad({ kind: 'ready', tmux })
    const open = async (): Promise<void> => {
      try {
        const tmux = await readTmux(sandbox)
        if (isOver) return
        show(tmux)
        stop = watchTmux(sandbox, show)
      } catch (caught) {
        const message = caught instanceof ApiError ? caught.message : String(caught)
        if (!isOver) setLoad({ kind: 'failed', message })
      }
    }
    void open()
    return () => {
      isOver = true
      stop?.()
    }
  }, [sandbox])
  return load
}
