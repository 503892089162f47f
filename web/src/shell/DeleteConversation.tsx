import { Confirm } from '../ui/Confirm'
import { Exact } from '../ui/Mono'

interface DeleteConversationProps {
  title: string
  act: () => Promise<unknown>
  onClose: () => void
}

// DeleteConversation asks before a conversation is deleted, from the rail or from the conversation itself.
export function DeleteConversation({ title, act, onClose }: DeleteConversationProps) {
  return (
    <Confirm
      title="Delete this conversation?"
      yes="Delete"
      failed="The conversation was not deleted."
      act={act}
      onClose={onClose}
    >
      <bdi className="font-medium text-ink">
        <Exact>{title}</Exact>
      </bdi>{' '}
      and all its messages are deleted for everyone. Its current run is stopped.
    </Confirm>
  )
}
