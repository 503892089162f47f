import { useQuery } from '@tanstack/react-query'
import { useState } from 'react'
import { skillsIn } from '../chat/view/queries'
import { ProjectPicker } from '../files/ProjectPicker'
import { EmptyState } from '../ui/EmptyState'
import { ErrorState } from '../ui/ErrorState'
import { FileErrors } from '../ui/FileErrors'
import { Mono } from '../ui/Mono'
import { Spinner } from '../ui/Spinner'

export function Skills() {
  const [project, setProject] = useState('')
  return (
    <>
      <ProjectPicker project={project} onChoose={setProject} />
      <Listed project={project} />
    </>
  )
}

function Listed({ project }: { project: string }) {
  const { data, error, isPending, refetch } = useQuery(skillsIn(project))
  if (isPending) return <Spinner word="Loading skills…" />
  if (data === undefined)
    return <ErrorState what="The skills could not be loaded." error={error} retry={() => void refetch()} />
  return (
    <>
      {data.skills.length === 0 && (
        <EmptyState title="No skills">
          A skill tells an agent how to do a task. It is a folder with a file SKILL.md, in the folder{' '}
          <Mono>skills</Mono> of the workspace: see docs/agents.md.
        </EmptyState>
      )}
      {data.skills.length > 0 && (
        <ul className="overflow-hidden rounded-lg border border-line">
          {data.skills.map((skill) => (
            <li key={skill.name} className="border-b border-line bg-raised px-4 py-3 last:border-b-0">
              <p className="flex flex-wrap items-center gap-2">
                <Mono>{`/${skill.name}${skill.argument_hint === undefined ? '' : ' ' + skill.argument_hint}`}</Mono>
                <span className="text-xs text-ink-soft">
                  {skill.user_invocable
                    ? skill.model_invocable
                      ? 'used by people and models'
                      : 'used by people'
                    : 'used by models'}
                </span>
              </p>
              <p className="text-sm text-ink-soft">{skill.description}</p>
            </li>
          ))}
        </ul>
      )}
      {data.problems.length > 0 && <FileErrors problems={data.problems} />}
    </>
  )
}
