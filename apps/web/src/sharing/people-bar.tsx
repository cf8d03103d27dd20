import { type TerminalController, useStore } from '@sandwire/react'
import { type ReactElement, useEffect, useState } from 'react'
import {
  canReceiveControl,
  controlActionOf,
  controlText,
  nameInSentence,
  participantsOf,
  type Participant,
  participantActivity,
  participantName,
  findControlProblem,
} from './people.ts'
import { sharingTexts } from '../texts/sharing.ts'

function User({
  person,
  onGive,
  note,
}: {
  readonly person: Participant
  readonly onGive: (() => void) | undefined
  /** Why control cannot be given to this participant. */
  readonly note: string
}): ReactElement {
  const what = `${participantName(person)}: ${participantActivity(person)}`
  const label = note === '' ? what : `${what}. ${note}`
  const className = `person ${person.drives ? 'drives' : ''} ${person.isConnected ? '' : 'away'}`
  if (onGive === undefined)
    return (
      <li className={className} title={label}>
        <span aria-hidden="true">{person.initials}</span>
        <span className="visually-hidden">{label}</span>
      </li>
    )
  return (
    <li className={className}>
      <button type="button" title={`${label}. ${sharingTexts.giveControl}`} onClick={onGive}>
        <span aria-hidden="true">{person.initials}</span>
        <span className="visually-hidden">
          {label}. {sharingTexts.giveControl}
        </span>
      </button>
    </li>
  )
}

/** Ids of participants who typed or had control since this page attached. */
function useKnownTypists(session: string | undefined, people: readonly Participant[]): ReadonlySet<string> {
  const [seen] = useState(() => new Map<string | undefined, Set<string>>())
  useEffect(() => {
    const ids = people.filter(({ role }) => role !== 'viewer').map(({ id }) => id)
    seen.set(session, new Set([...(seen.get(session) ?? []), ...ids]))
  }, [seen, session, people])
  return seen.get(session) ?? new Set()
}

/** The participants of a terminal and who has control; hidden while the user is alone in control. */
export function ParticipantBar({
  controller,
}: {
  readonly controller: TerminalController
}): ReactElement | null {
  const state = useStore(controller.state)
  const people = participantsOf(state)
  const { handle } = controller
  const seen = useKnownTypists(state.session, people)
  const [asked, setAsked] = useState<string>()
  const isDriver = state.role === 'driver'
  useEffect(() => {
    if (isDriver) setAsked(undefined)
  }, [isDriver])
  if (
    handle === undefined ||
    (people.length < 2 && state.role === 'driver') ||
    state.status.is !== 'attached'
  )
    return null
  const action = controlActionOf(state)
  const asker = people.find(({ id }) => id === state.requestedBy)
  const driver = people.find(({ drives }) => drives)
  const isAsked = asked !== undefined && asked === driver?.id
  /** The clicked button may disappear, so the focus moves to the terminal. */
  const act = (run: () => void) => (): void => {
    run()
    controller.surface.focus()
  }
  return (
    <div className="people-bar" role="status">
      <ul className="people" aria-label={sharingTexts.here}>
        {people.map((person) => {
          const isGiven = isDriver && canReceiveControl(person, seen)
          return (
            <User
              key={person.id}
              person={person}
              onGive={isGiven ? act(() => handle.give(person.id)) : undefined}
              note={isDriver && !isGiven ? findControlProblem(person) : ''}
            />
          )
        })}
      </ul>
      <span className="people-text">
        {controlText({ role: state.role, driver, asker, isAsked, isFree: controller.canTakeControlByTyping })}
      </span>
      {asker !== undefined && (
        <button type="button" className="primary" onClick={act(() => handle.give(asker.id))}>
          {sharingTexts.giveControlTo(nameInSentence(asker))}
        </button>
      )}
      {action === 'ask' && (
        <>
          {driver?.isOwn !== true && (
            <button
              type="button"
              onClick={() => {
                handle.ask()
                setAsked(driver?.id)
              }}
            >
              {isAsked ? sharingTexts.requestAgain : sharingTexts.requestControl}
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
  )
}
