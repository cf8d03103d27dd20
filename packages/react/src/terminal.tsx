import '@xterm/xterm/css/xterm.css'
import type { AttachRequest } from '@sandwire/client'
import type { ClientStatus, Exit, SandwireError } from '@sandwire/protocol'
import { type CSSProperties, type ReactElement, useEffect, useRef, useState } from 'react'
import { latestOptions } from './latest-options.ts'
import { DEFAULT_APPEARANCE } from './terminal/appearance.ts'
import { TerminalController, type TerminalOptions, type TerminalState } from './terminal/controller.ts'

/** Props of both kinds of terminal. */
interface CommonTerminalProps {
  readonly onExit?: (exit: Exit) => void
  readonly onError?: (error: SandwireError) => void
  readonly onState?: (state: TerminalState) => void
  /** Shows connection problems over the screen; default true. */
  readonly showsProblem?: boolean
  readonly className?: string
  readonly style?: CSSProperties
}

/** A terminal that the component creates and disposes. */
export interface OwnTerminalProps
  extends CommonTerminalProps, Omit<TerminalOptions, 'request'>, Omit<AttachRequest, 'mode'> {
  readonly controller?: undefined
}

/** A terminal that outlives the component and has its own options. */
interface ControlledTerminalProps extends CommonTerminalProps {
  readonly controller: TerminalController
}

export type TerminalProps = OwnTerminalProps | ControlledTerminalProps

/** The message over the screen; undefined: none. `before` is the previous message, which stays while reconnecting. */
export function connectionProblem(status: ClientStatus, before: string | undefined): string | undefined {
  switch (status.kind) {
    case 'connecting':
      return status.attempt === 1 ? 'Connecting…' : before
    case 'reconnecting':
      return `${status.why}. Reconnecting…`
    case 'failed':
      return `Disconnected. ${status.error.message}.`
    case 'attached':
    case 'exited':
    case 'detached':
      return undefined
  }
}

const FULL_SIZE: CSSProperties = { width: '100%', height: '100%' }
/** Fixed colors, since the terminal below may have any. */
const PROBLEM_STYLE: CSSProperties = {
  position: 'absolute',
  inset: '0 0 auto',
  zIndex: 10,
  padding: '6px 10px',
  background: '#2b2f38',
  color: '#f2f4f8',
  font: '13px/1.45 system-ui, sans-serif',
  overflowWrap: 'anywhere',
}

/** Creates a terminal that uses the latest props of its component. */
function createController(
  first: OwnTerminalProps,
  latest: { readonly current: TerminalProps },
): TerminalController {
  // Once a controller is given, the one created before uses the first props.
  return new TerminalController(
    latestOptions(() => (latest.current.controller === undefined ? latest.current : first)),
  )
}

/**
 * A terminal in a sandbox. It connects when it is first mounted and reads its target then, so another session needs
 * another `key`. It takes the size of its element.
 */
export function Terminal(props: TerminalProps): ReactElement {
  const element = useRef<HTMLDivElement>(null)
  const latest = useRef(props)
  latest.current = props
  const made = useRef<TerminalController>(undefined)
  const [problem, setProblem] = useState<string>()

  useEffect(() => {
    const container = element.current
    if (container === null) return undefined
    const first = latest.current
    const controller = first.controller ?? createController(first, latest)
    if (first.controller === undefined) made.current = controller
    let last = controller.state.get().status
    setProblem((before) => connectionProblem(last, before))
    const stop = controller.state.subscribe((state) => {
      const { onState, onExit, onError } = latest.current
      onState?.(state)
      if (state.status === last) return
      last = state.status
      setProblem((before) => connectionProblem(state.status, before))
      if (last.kind === 'exited') onExit?.(last.exit)
      if (last.kind === 'failed') onError?.(last.error)
    })
    controller.mount(container)
    return () => {
      stop()
      made.current?.dispose()
      made.current = undefined
    }
  }, [props.controller])

  // Compared by value, since the prop is often a new object on every render.
  const appearance = props.controller === undefined ? JSON.stringify(props.appearance) : undefined
  useEffect(() => {
    const { current } = latest
    if (current.controller === undefined)
      made.current?.surface.setAppearance({ ...DEFAULT_APPEARANCE, ...current.appearance })
  }, [appearance])

  const { className, style, showsProblem = true } = props
  return (
    <div className={className} style={{ ...FULL_SIZE, position: 'relative', ...style }}>
      <div ref={element} style={FULL_SIZE} />
      {showsProblem && problem !== undefined && (
        <div role="status" style={PROBLEM_STYLE}>
          {problem}
        </div>
      )}
    </div>
  )
}
