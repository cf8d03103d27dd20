import '@xterm/xterm/css/xterm.css'
import type { AttachRequest } from '@sandwire/client'
import type { Exit, SandwireError } from '@sandwire/protocol'
import { type CSSProperties, type ReactElement, useEffect, useRef, useState } from 'react'
import { TerminalController, type TerminalOptions, type TerminalState } from './terminal/controller.ts'
import { troubleOf } from './trouble.ts'

export interface TerminalProps extends Omit<TerminalOptions, 'request'>, Omit<AttachRequest, 'mode'> {
  /** A terminal that outlives the component; without it one is made, and goes with it. */
  readonly controller?: TerminalController
  readonly onExit?: (exit: Exit) => void
  readonly onError?: (error: SandwireError) => void
  readonly onState?: (state: TerminalState) => void
  /** Say over the screen what is wrong with the connection, as long as something is; default true. */
  readonly showsTrouble?: boolean
  readonly className?: string
  readonly style?: CSSProperties
}

const WHOLE: CSSProperties = { width: '100%', height: '100%' }
/** Colours of their own: what is below can be of any. */
const TROUBLE: CSSProperties = {
  ...{ position: 'absolute', inset: '0 0 auto', zIndex: 10, padding: '6px 10px' },
  ...{ background: '#2b2f38', color: '#f2f4f8', font: '13px/1.45 system-ui, sans-serif' },
  overflowWrap: 'anywhere',
}

function requestOf(props: TerminalProps): AttachRequest {
  const { sandbox, create, session, cmd, args, template, params, cwd, role, take, keepSeconds, overflow } =
    props
  const all = {
    sandbox,
    create,
    session,
    cmd,
    args,
    template,
    params,
    cwd,
    role,
    take,
    keepSeconds,
    overflow,
  }
  return Object.fromEntries(Object.entries(all).filter(([, value]) => value !== undefined))
}

/**
 * A terminal in a sandbox. It connects when it is first shown; what it is to attach to is read then, so another session is another
 * `key`. It takes the size of its element.
 */
export function Terminal(props: TerminalProps): ReactElement {
  const element = useRef<HTMLDivElement>(null)
  const latest = useRef(props)
  latest.current = props
  const [trouble, setTrouble] = useState<string>()

  useEffect(() => {
    const place = element.current
    if (place === null) return undefined
    const given = latest.current.controller
    const controller =
      given ?? new TerminalController({ ...latest.current, request: requestOf(latest.current) })
    let last = controller.state.get().status
    setTrouble((before) => troubleOf(last, before))
    const stop = controller.state.subscribe((state) => {
      const { onState, onExit, onError } = latest.current
      onState?.(state)
      if (state.status === last) return
      last = state.status
      setTrouble((before) => troubleOf(state.status, before))
      if (last.is === 'exited') onExit?.(last.exit)
      if (last.is === 'failed') onError?.(last.error)
    })
    controller.mount(place)
    return () => {
      stop()
      if (given === undefined) controller.dispose()
    }
  }, [props.controller])

  const { className, style, showsTrouble = true } = props
  if (!showsTrouble) return <div ref={element} className={className} style={{ ...WHOLE, ...style }} />
  return (
    <div className={className} style={{ ...WHOLE, position: 'relative', ...style }}>
      <div ref={element} style={WHOLE} />
      {trouble !== undefined && (
        <div role="status" style={TROUBLE}>
          {trouble}
        </div>
      )}
    </div>
  )
}
