import { type TerminalController, useStore } from '@sandwire/react'
import { type ReactElement, useEffect, useState } from 'react'
import { sharingTexts } from '../texts/sharing.ts'
import {
  canReceiveControl,
  controlActionOf,
  controlText,
  findControlProblem,
  nameInSentence,
  type Participant,
  participantActivity,
  participantName,
  participantsOf,
  privateActionOf,
} from './participants.ts'

function ParticipantItem({
  participant,
  onGiveControl,
  note,
}: {
  readonly participant: Participant
  readonly onGiveControl: (() => void) | undefined
  /** Why control cannot be given to this participant. */
  readonly note: string
}): ReactElement {
  const what = `${participantName(participant)}: ${participantActivity(participant)}`
  const label = note === '' ? what : `${what}. ${note}`
  const className = `participant ${participant.hasControl ? 'in-control' : ''} ${participant.isConnected ? '' : 'away'}`
  if (onGiveControl === undefined)
    return (
      <li className={className} title={label}>
        <span aria-hidden="true">{participant.initials}</span>
        <span className="visually-hidden">{label}</span>
      </li>
    )
  return (
    <li className={className}>
      <button type="button" title={`${label}. ${sharingTexts.giveControl}`} onClick={onGiveControl}>
        <span aria-hidden="true">{participant.initials}</span>
        <span className="visually-hidden">
          {label}. {sharingTexts.giveControl}
        </span>
      </button>
    </li>
  )
}

/** Begins or ends private input. */
function PrivateInputButton({
  action,
  onChange,
}: {
  readonly action: ReturnType<typeof privateActionOf>
  readonly onChange: (isOn: boolean) => void
}): ReactElement | null {
  if (action === undefined) return null
  return (
    <button
      type="button"
      aria-pressed={action === 'end'}
      title={sharingTexts.privateHint}
      onClick={() => onChange(action === 'begin')}
    >
      {action === 'begin' ? sharingTexts.beginPrivate : sharingTexts.endPrivate}
    </button>
  )
}

/** Ids of participants who typed or had control since this page attached. */
function useKnownTypists(
  session: string | undefined,
  participants: readonly Participant[],
): ReadonlySet<string> {
  const [typists] = useState(() => new Map<string | undefined, Set<string>>())
  useEffect(() => {
    const ids = participants.filter(({ role }) => role !== 'viewer').map(({ id }) => id)
    typists.set(session, new Set([...(typists.get(session) ?? []), ...ids]))
  }, [typists, session, participants])
  return typists.get(session) ?? new Set()
}

/** The participants of a terminal and who has control; hidden while the user is alone in control. */
export function ParticipantBar({
  controller,
}: {
  readonly controller: TerminalController
}): ReactElement | null {
  const state = useStore(controller.state)
  const participants = participantsOf(state)
  const { handle } = controller
  const typists = useKnownTypists(state.session, participants)
  const [requestedFrom, setRequestedFrom] = useState<string>()
  const isDriver = state.role === 'driver'
  useEffect(() => {
    if (isDriver) setRequestedFrom(undefined)
  }, [isDriver])
  if (
    handle === undefined ||
    (participants.length < 2 && state.role === 'driver' && state.presence?.private === null) ||
    state.status.kind !== 'attached'
  )
    return null
  const action = controlActionOf(state)
  const requester = participants.find(({ id }) => id === state.requestedBy)
  const driver = participants.find(({ hasControl }) => hasControl)
  const isRequested = requestedFrom !== undefined && requestedFrom === driver?.id
  /** The clicked button may disappear, so the focus moves to the terminal. */
  const act = (run: () => void) => (): void => {
    run()
    controller.surface.focus()
  }
  return (
    <div className="participant-bar" role="status">
      <ul className="participants" aria-label={sharingTexts.here}>
        {participants.map((participant) => {
          const canGive = isDriver && canReceiveControl(participant, typists)
          return (
            <ParticipantItem
              key={participant.id}
              participant={participant}
              onGiveControl={canGive ? act(() => handle.give(participant.id)) : undefined}
              note={isDriver && !canGive ? findControlProblem(participant) : ''}
            />
          )
        })}
      </ul>
      <span className="participant-text">
        {state.presence?.private === null
          ? controlText({
              role: state.role,
              driver,
              requester,
              isRequested,
              canTakeByTyping: controller.canTakeControlByTyping,
            })
          : sharingTexts.inputIsPrivate}
      </span>
      <div className="participant-actions">
        <PrivateInputButton
          action={privateActionOf(state)}
          onChange={(isOn) => act(() => handle.setPrivate(isOn))()}
        />
        {requester !== undefined && (
          <button type="button" className="primary" onClick={act(() => handle.give(requester.id))}>
            {sharingTexts.giveControlTo(nameInSentence(requester))}
          </button>
        )}
        {action === 'ask' && (
          <>
            {driver?.isOwn !== true && (
              <button
                type="button"
                onClick={() => {
                  handle.ask()
                  setRequestedFrom(driver?.id)
                }}
              >
                {isRequested ? sharingTexts.requestAgain : sharingTexts.requestControl}
              </button>
            )}
            <button type="button" onClick={act(() => handle.take())}>
              {driver?.isOwn === true ? sharingTexts.takeControlHere : sharingTexts.takeControl}
            </button>
          </>
        )}
        {action === 'take' && (
          <button type="button" className="primary" onClick={act(() => handle.take())}>
            {sharingTexts.takeControl}
          </button>
        )}
      </div>
    </div>
  )
}
