import { type TerminalController, useStore } from '@sandwire/react'
import { type ReactElement, useEffect, useState } from 'react'
import { driveActionOf, driveTextOf, peopleOf, type Somebody, whatTheyDo } from './people.ts'

function Person({
  person,
  onGive,
}: {
  readonly person: Somebody
  readonly onGive: (() => void) | undefined
}): ReactElement {
  const label = `${person.name}${person.isSelf ? ' (you)' : ''} ${whatTheyDo(person)}`
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
      <button type="button" title={`${label}. Let them drive`} onClick={onGive}>
        <span aria-hidden="true">{person.initials}</span>
        <span className="visually-hidden">{label}. Let them drive</span>
      </button>
    </li>
  )
}

/** Who is in a terminal and who drives it; shown when that is somebody else than this person alone. */
export function PeopleBar({ controller }: { readonly controller: TerminalController }): ReactElement | null {
  const state = useStore(controller.state)
  const people = peopleOf(state)
  const { handle } = controller
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
  const action = driveActionOf(state)
  const asker = people.find(({ id }) => id === state.askedBy)
  const driver = people.find(({ drives }) => drives)
  const isAsked = asked !== undefined && asked === driver?.id
  return (
    <div className="people-bar" role="status">
      <ul className="people" aria-label="Who is here">
        {people.map((person) => (
          <Person
            key={person.id}
            person={person}
            onGive={state.role === 'driver' && !person.isSelf ? () => handle.give(person.id) : undefined}
          />
        ))}
      </ul>
      <span className="people-text">{driveTextOf({ role: state.role, driver, asker, isAsked })}</span>
      {asker !== undefined && (
        <button type="button" className="primary" onClick={() => handle.give(asker.id)}>
          Let {asker.name} drive
        </button>
      )}
      {action === 'ask' && (
        <>
          <button
            type="button"
            onClick={() => {
              handle.ask()
              setAsked(driver?.id)
            }}
          >
            {isAsked ? 'Ask again' : 'Ask to drive'}
          </button>
          <button type="button" onClick={() => handle.take()}>
            Take over
          </button>
        </>
      )}
      {action === 'take' && (
        <button type="button" className="primary" onClick={() => handle.take()}>
          Drive
        </button>
      )}
    </div>
  )
}
