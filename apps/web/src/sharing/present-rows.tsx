import type { ReactElement } from 'react'
import { type Somebody, whatTheyDo, whoTheyAre } from './people.ts'
import { sharingTexts } from '../texts/sharing.ts'

/** Everybody who is in a terminal now. */
export function PresentRows({ people }: { readonly people: readonly Somebody[] }): ReactElement {
  return (
    <section>
      <h3 className="dim">{sharingTexts.here}</h3>
      <ul className="rows bordered" aria-label={sharingTexts.here}>
        {people.map((person) => (
          <li key={person.id} className="row">
            <span className="row-text">
              {whoTheyAre(person)}
              <small>{whatTheyDo(person)}</small>
            </span>
          </li>
        ))}
      </ul>
    </section>
  )
}
