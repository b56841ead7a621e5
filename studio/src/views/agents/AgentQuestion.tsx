import "./agents.css";

import { useMemo } from "react";

import type { InboxItem } from "../../api/types.ts";
import { type AgentQuestionView, questionOf } from "../../pure/agent_question.ts";
import { oneLine } from "../../pure/inbox_order.ts";
import { InterviewView } from "./analyze/InterviewView.tsx";
import { CallView } from "./atris/CallView.tsx";
import { ChoiceView } from "./atris/ChoiceView.tsx";
import { GateView } from "./docs/GateView.tsx";
import { MeetingView } from "./mail/MeetingView.tsx";
import { MailQuestionView, NoticeView } from "./mail/NoticeView.tsx";
import { ReplyView } from "./mail/ReplyView.tsx";
import { ActionView } from "./other/ActionView.tsx";
import { BudgetView, ValueView } from "./other/ValueView.tsx";
import { ChangeSetView } from "./sheet/ChangeSetView.tsx";

/** What is asked, as the thing itself: a mail as a mail, a change set as a grid. Other graphs: the value as text. */
export function AgentQuestion({ item }: { item: InboxItem }) {
  // A poll brings the same interrupt as a new object; its id stands for its value, which never changes.
  const question = useMemo(() => questionOf(item), [item.thread_id, item.interrupt.id]);
  return (
    <div className="agent-question" key={item.interrupt.id}>
      <Question question={question} thread={item.thread_id} />
    </div>
  );
}

/** A text of one short line is the title of the question already. */
function unlessTitle(text: string): string {
  return oneLine(text) === text.trim() ? "" : text;
}

function Question({ question, thread }: { question: AgentQuestionView; thread: string }) {
  switch (question.type) {
    case "reply":
      return <ReplyView {...question} />;
    case "meeting":
      return <MeetingView meeting={question.meeting} />;
    case "notice":
      return <NoticeView {...question} />;
    case "mail_question":
      return <MailQuestionView {...question} />;
    case "changes":
      return (
        <ChangeSetView changes={{ ...question.changes, summary: unlessTitle(question.changes.summary) }} />
      );
    case "call":
      return <CallView call={question.call} />;
    case "gate":
      return <GateView gate={question.gate} thread={thread} />;
    case "interview":
      return (
        <InterviewView
          question={question.question}
          isTitle={!unlessTitle(question.question)}
          thread={thread}
        />
      );
    case "choice":
      return <ChoiceView {...question} />;
    case "budget":
      return <BudgetView {...question} />;
    case "action":
      return <ActionView {...question} />;
    case "value":
      return <ValueView {...question} />;
  }
}
