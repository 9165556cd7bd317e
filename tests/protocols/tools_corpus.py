"""A hundred tools as public MCP servers and web APIs offer them, described in words of our own.

A tool is a line `name: description`; each parameter an indented line `name type[!][=default] description`, `!` for
required; the fields of an object, or of an array's objects, stand below it, set in further.
"""

from __future__ import annotations

import json
import re
from functools import cache
from typing import Any

from toolwire.definition.from_schema import from_schema
from toolwire.definition.tool import Tool

_LINE = re.compile(r"( +)(\S+) ([a-z]+)(\([^)]*\))?(\[\])?(!)?(?:=(\S+))? (.+)")


@cache
def corpus() -> tuple[Tool, ...]:
    """The tools, known by their schemas."""
    return tuple(_tool(block) for block in re.split(r"\n(?=\S)", TEXT.strip("\n")))


def _tool(block: str) -> Tool:
    head, *lines = block.split("\n")
    name, _, description = head.partition(": ")
    root: dict[str, Any] = {"type": "object", "properties": {}, "required": [], "additionalProperties": False}
    levels = [(0, root)]
    for line in lines:
        found = _LINE.fullmatch(line)
        assert found is not None, line
        depth = len(found[1])
        while levels[-1][0] >= depth:
            levels.pop()
        node = _node(found)
        parent = levels[-1][1]
        parent["properties"][found[2]] = node
        if found[6]:
            parent["required"].append(found[2])
        if found[3] == "object":
            inner = node["items"] if found[5] else node
            levels.append((depth, inner))
    return from_schema(name, description, _pruned(root))


def _node(found: re.Match[str]) -> dict[str, Any]:
    kind, options = found[3], (found[4] or "")[1:-1]
    node: dict[str, Any] = {"type": "string", "enum": options.split("|")} if kind == "enum" else {"type": kind}
    if kind in ("integer", "number") and options:
        low, _, high = options.partition("..")
        node |= {key: json.loads(value) for key, value in (("minimum", low), ("maximum", high)) if value}
    if kind == "string" and options:
        node["format"] = options
    if kind == "object":
        node |= {"properties": {}, "required": []}
    if found[5]:
        node = {"type": "array", "items": node}
    if found[7]:
        node["default"] = found[7] if kind in ("string", "enum") and not found[5] else json.loads(found[7])
    return {**node, "description": found[8]}


def _pruned(node: dict[str, Any]) -> dict[str, Any]:
    """Without empty lists of required names and of fields."""
    return {
        key: {name: _pruned(inner) for name, inner in value.items()}
        if key == "properties"
        else _pruned(value)
        if key == "items"
        else value
        for key, value in node.items()
        if value != [] and (key != "properties" or value or "additionalProperties" in node)
    }


TEXT = """
read_text_file: Read a whole file as text. Give head or tail to get only its first or last lines.
  path string! Where the file is
  head integer Only this many lines from the start
  tail integer Only this many lines from the end
read_multiple_files: Read several files in one go. One that fails does not stop the others.
  paths string[]! Files to read
write_file: Create a file or replace everything in it. What was there before is lost.
  path string! Where to write
  content string! The new text
edit_file: Replace passages of a text file and show the difference.
  path string! The file to change
  edits object[]! Replacements, made in order
    oldText string! Text as it stands now, exactly
    newText string! Text to put in its place
  dryRun boolean=false Show the difference without writing it
create_directory: Make a directory, with its parents. Does nothing if it is there.
  path string! The directory
list_directory: List the files and directories in a directory, marked as such.
  path string! The directory
  sortBy enum(name|size)=name Order of the list
directory_tree: Give the tree below a directory as JSON.
  path string! Where to begin
  excludePatterns string[]=[] Glob patterns to leave out
move_file: Move or rename a file or directory. Fails if the destination exists.
  source string! What to move
  destination string! Where to
search_files: Find files whose path matches a pattern, below a directory.
  path string! Where to begin
  pattern string! Glob pattern, such as **/*.md
  excludePatterns string[]=[] Glob patterns to leave out
get_file_info: Tell size, times and permissions of a file.
  path string! The file
git_status: Show which files of the working tree have changed.
  repo_path string! The repository's directory
git_diff: Compare the working tree with a branch or commit.
  repo_path string! The repository's directory
  target string! Branch or commit to compare with
  context_lines integer(0..)=3 Unchanged lines around each change
git_commit: Record what is staged.
  repo_path string! The repository's directory
  message string! The commit's message
git_log: List the latest commits.
  repo_path string! The repository's directory
  max_count integer(1..)=10 How many at most
  start_timestamp string Only later ones: ISO 8601, or words such as "2 weeks ago"
  end_timestamp string Only earlier ones, in the same forms
git_create_branch: Make a branch.
  repo_path string! The repository's directory
  branch_name string! Name of the new branch
  base_branch string Where it starts; the current branch if left out
create_issue: Open an issue in a repository.
  owner string! Account that owns the repository
  repo string! Name of the repository
  title string! Title of the issue
  body string Text in Markdown
  labels string[] Labels to put on it
  assignees string[] Logins of the people to assign
  milestone integer Number of the milestone
update_issue: Change an issue; what is left out stays as it is.
  owner string! Account that owns the repository
  repo string! Name of the repository
  issue_number integer! Number of the issue
  title string New title
  body string New text
  state enum(open|closed) New state
  state_reason enum(completed|not_planned|reopened) Why the state changes
list_issues: List a repository's issues.
  owner string! Account that owns the repository
  repo string! Name of the repository
  state enum(open|closed|all)=open Which ones
  labels string[] Only those with all these labels
  sort enum(created|updated|comments)=created What to sort by
  direction enum(asc|desc)=desc Order
  since string(date-time) Only those updated after this time
  page integer(1..)=1 Page of the results
  perPage integer(1..100)=30 Results on a page
add_issue_comment: Write a comment on an issue or pull request.
  owner string! Account that owns the repository
  repo string! Name of the repository
  issue_number integer! Number of the issue
  body string! The comment in Markdown
create_pull_request: Propose to merge a branch.
  owner string! Account that owns the repository
  repo string! Name of the repository
  title string! Title of the pull request
  head string! Branch with the changes
  base string! Branch to merge into
  body string Description in Markdown
  draft boolean=false Open it as a draft
  maintainer_can_modify boolean=true Let maintainers push to the branch
merge_pull_request: Merge a pull request.
  owner string! Account that owns the repository
  repo string! Name of the repository
  pull_number integer! Number of the pull request
  merge_method enum(merge|squash|rebase)=merge How to merge
  commit_title string Title of the merge commit
create_pull_request_review: Review a pull request, with comments on its lines if wanted.
  owner string! Account that owns the repository
  repo string! Name of the repository
  pull_number integer! Number of the pull request
  event enum(APPROVE|REQUEST_CHANGES|COMMENT)! Verdict
  body string Summary of the review
  comments object[] Comments on lines
    path string! File
    line integer! Line in the new version
    body string! The comment
search_code: Search source code in all public repositories.
  q string! Query with GitHub's qualifiers, such as repo: and language:
  sort enum(indexed) What to sort by; best match if left out
  page integer(1..)=1 Page of the results
  per_page integer(1..100)=30 Results on a page
search_repositories: Find repositories by words and qualifiers.
  query string! What to look for
  page integer(1..)=1 Page of the results
  perPage integer(1..100)=30 Results on a page
get_file_contents: Read a file or list a directory of a repository.
  owner string! Account that owns the repository
  repo string! Name of the repository
  path string! Path in the repository
  ref string Branch, tag or commit; the default branch if left out
push_files: Commit several files at once.
  owner string! Account that owns the repository
  repo string! Name of the repository
  branch string! Branch to commit to
  files object[]! Files to write
    path string! Path in the repository
    content string! Whole text of the file
  message string! The commit's message
fork_repository: Fork a repository to your account or an organisation.
  owner string! Account that owns the repository
  repo string! Name of the repository
  organization string Organisation to fork to
slack_post_message: Post a message to a channel.
  channel_id string! The channel
  text string! The message in Slack's markup
slack_reply_to_thread: Answer in a thread.
  channel_id string! The channel of the thread
  thread_ts string! Timestamp of the thread's first message, such as 1712345678.123456
  text string! The message
slack_add_reaction: React to a message with an emoji.
  channel_id string! The channel of the message
  timestamp string! Timestamp of the message
  reaction string! Name of the emoji, without colons
slack_get_channel_history: Read the latest messages of a channel.
  channel_id string! The channel
  limit integer(1..1000)=10 How many at most
slack_get_users: List the people of the workspace.
  cursor string Where the last page ended
  limit integer(1..200)=100 How many at most
send_email: Send an e-mail from the user's account.
  to string(email)[]! Addresses of the recipients
  subject string! Subject
  body string! Text of the message
  cc string(email)[] Addresses that get a copy
  bcc string(email)[] Addresses that get a copy unseen by the others
  mimeType enum(text/plain|text/html)=text/plain What the body is
  attachments string[] Paths of files to attach
search_emails: Find messages with Gmail's query language.
  query string! Such as from:ada is:unread after:2026/01/01
  maxResults integer(1..500)=10 How many at most
modify_email: Change the labels of a message.
  messageId string! The message
  addLabelIds string[] Labels to add
  removeLabelIds string[] Labels to take away
create_filter: Make a rule for incoming mail.
  criteria object! Which messages it is for
    from string Sender
    to string Recipient
    subject string Words of the subject
    hasAttachment boolean Whether a file is attached
    size integer Size in bytes to compare with
    sizeComparison enum(smaller|larger) How to compare the size
  action object! What is done with them
    addLabelIds string[] Labels to add
    removeLabelIds string[] Labels to take away
    forward string(email) Address to forward to
list_events: List a calendar's events in a span of time.
  calendarId string=primary The calendar
  timeMin string(date-time)! Start of the span
  timeMax string(date-time)! End of the span
  timeZone string Name of a time zone, such as Europe/Oslo
  query string Words that the event must hold
create_event: Put an event into a calendar.
  calendarId string=primary The calendar
  summary string! Title of the event
  start string(date-time)! When it begins
  end string(date-time)! When it ends
  timeZone string Name of a time zone
  location string Where it is
  description string What it is about
  attendees object[] People to invite
    email string(email)! Their address
    optional boolean=false Whether they need not come
  recurrence string[] Rules in iCalendar's form, such as RRULE:FREQ=WEEKLY
  reminders object When to remind
    useDefault boolean=true Use those of the calendar
    minutes integer[] Minutes before it begins
delete_event: Remove an event.
  calendarId string=primary The calendar
  eventId string! The event
  sendUpdates enum(all|externalOnly|none)=none Who is told
freebusy: Tell when people are busy.
  calendarIds string[]! Calendars to look at
  timeMin string(date-time)! Start of the span
  timeMax string(date-time)! End of the span
drive_search: Find files in the drive by name and content.
  query string! What to look for
  mimeType string Only files of this type
  pageSize integer(1..100)=20 How many at most
  orderBy enum(modifiedTime|name|createdTime)=modifiedTime What to sort by
drive_share: Give somebody access to a file.
  fileId string! The file
  email string(email)! Whom to give it
  role enum(reader|commenter|writer)=reader What they may do
  notify boolean=true Send them a message
sheets_read: Read the cells of a range.
  spreadsheetId string! The spreadsheet
  range string! In A1 notation, such as Sheet1!A1:D20
  valueRender enum(FORMATTED|UNFORMATTED|FORMULA)=FORMATTED How values come back
sheets_append: Add rows below a table.
  spreadsheetId string! The spreadsheet
  range string! Where the table is, in A1 notation
  values array! Rows, each a list of cells
  inputOption enum(RAW|USER_ENTERED)=USER_ENTERED Whether values are read as if typed
notion_search: Search pages and databases by title.
  query string! Words of the title
  filter enum(page|database) Only these
  sort enum(ascending|descending)=descending Order by last edit
  page_size integer(1..100)=25 How many at most
notion_create_page: Make a page in a database or below another page.
  parent_id string! Database or page that it belongs to
  title string! Title of the page
  properties object Values of the database's columns
  markdown string What stands on the page
notion_append_blocks: Add text at the end of a page.
  block_id string! Page or block to add to
  markdown string! What to add
notion_query_database: List the rows of a database that fit a filter.
  database_id string! The database
  filter object Filter in Notion's form
  sorts object[] What to sort by, first comes first
    property string! Name of the column
    direction enum(ascending|descending)=ascending Order
  page_size integer(1..100)=50 How many at most
jira_search: Find issues with JQL.
  jql string! Query, such as project = OPS AND status != Done
  fields string[] Fields to give; the usual ones if left out
  limit integer(1..50)=10 How many at most
  start_at integer(0..)=0 How many to skip
jira_create_issue: Open an issue in a project.
  project_key string! Key of the project, such as OPS
  summary string! Title
  issue_type enum(Task|Bug|Story|Epic)! Kind of issue
  description string Text in Markdown
  assignee string Account or address of who works on it
  components string[] Components that it concerns
  priority enum(Highest|High|Medium|Low|Lowest)=Medium How urgent it is
jira_transition_issue: Move an issue to another status.
  issue_key string! Key of the issue, such as OPS-12
  transition_id string! Transition to make, as listed for the issue
  comment string Comment to leave
linear_create_issue: Open an issue for a team.
  teamId string! The team
  title string! Title
  description string Text in Markdown
  priority integer(0..4)=0 0 for none, 1 for urgent, 4 for low
  estimate number(0..) Points
  dueDate string(date) When it should be done
confluence_get_page: Read a page.
  page_id string! The page
  include_metadata boolean=true Tell author, version and labels too
  convert_to_markdown boolean=true Give Markdown instead of HTML
query: Run a read-only SQL query.
  sql string! One SELECT statement
list_tables: List the tables of a schema, with their columns.
  schema string=public The schema
  include_views boolean=false List views as well
explain_query: Show how the database would run a query.
  sql string! The statement
  analyze boolean=false Run it, and give real times
  format enum(text|json|yaml)=text Form of the plan
mongo_find: Find documents of a collection.
  collection string! The collection
  filter object Query in MongoDB's form
  projection object Fields to give
  sort object What to sort by: 1 up, -1 down
  limit integer(1..1000)=10 How many at most
mongo_aggregate: Run an aggregation pipeline.
  collection string! The collection
  pipeline array! Stages in MongoDB's form
redis_set: Store a value under a key.
  key string! The key
  value string! The value
  expireSeconds integer(1..) Forget it after so many seconds
vector_search: Find the stored passages nearest to a text.
  collection string! Where to search
  query string! The text
  top_k integer(1..100)=5 How many at most
  min_score number(0..1)=0.2 Least similarity
  filter object Values that a passage's metadata must have
web_search: Search the web.
  query string! What to look for, in at most 400 characters
  count integer(1..20)=10 Results on a page
  offset integer(0..9)=0 Pages to skip
  freshness enum(day|week|month|year|any)=any How old results may be
  country string=US Two letters of the country to search for
local_search: Find shops, restaurants and other places.
  query string! What and where, such as pizza near Central Park
  count integer(1..20)=5 How many at most
fetch: Read a web page as Markdown.
  url string(uri)! Address of the page
  max_length integer(1..1000000)=5000 Characters to give at most
  start_index integer(0..)=0 Character to begin at, to read on after a cut
  raw boolean=false Give the HTML as it is
crawl: Follow the links of a site and read its pages.
  url string(uri)! Where to begin
  maxDepth integer(1..5)=1 How many links deep
  limit integer(1..500)=50 Pages at most
  includePaths string[] Only paths that match one of these
  excludePaths string[] Paths to leave out
  formats enum(markdown|html|links|screenshot)[]=["markdown"] What to give of each page
  allowExternalLinks boolean=false Leave the site
extract: Take values out of web pages as a schema describes them.
  urls string(uri)[]! Pages to read
  prompt string What to look for
  schema object JSON schema of the answer
browser_navigate: Open an address in the browser.
  url string(uri)! Where to go
browser_click: Click on an element of the page.
  element string! What it is, in words a person understands
  ref string! Its reference in the page's snapshot
  doubleClick boolean=false Click twice
  button enum(left|right|middle)=left Which button
browser_type: Type into a field.
  element string! What it is, in words a person understands
  ref string! Its reference in the page's snapshot
  text string! What to type
  submit boolean=false Press Enter afterwards
  slowly boolean=false One character at a time
browser_take_screenshot: Take a picture of the page or of an element.
  type enum(png|jpeg)=png Form of the picture
  filename string Where to save it
  fullPage boolean=false The whole page, not only what is seen
browser_wait_for: Wait for text or for time to pass.
  time number(0..) Seconds to wait
  text string Text that must appear
  textGone string Text that must disappear
get_current_time: Tell the time in a time zone.
  timezone string! Name of the zone, such as Asia/Tokyo
convert_time: Convert a time of day between time zones.
  source_timezone string! Zone of the time given
  time string! Time of day as HH:MM
  target_timezone string! Zone that is wanted
get_forecast: Tell the weather of the coming days.
  latitude number(-90..90)! North is positive
  longitude number(-180..180)! East is positive
  days integer(1..16)=7 How many days
  units enum(metric|imperial)=metric Units of the values
  hourly boolean=false Give each hour
geocode: Find the coordinates of an address.
  address string! The address
  region string Two letters of the country to prefer
directions: Find a way between places.
  origin string! Address or coordinates of the start
  destination string! Address or coordinates of the end
  mode enum(driving|walking|bicycling|transit)=driving How to travel
  waypoints string[] Places on the way
  departure_time string(date-time) When to leave
  avoid enum(tolls|highways|ferries)[] What to keep away from
search_places: Find places around a point.
  query string! What to look for
  location object Where to look
    latitude number(-90..90)! North is positive
    longitude number(-180..180)! East is positive
  radius integer(1..50000)=5000 Metres around it
  open_now boolean=false Only those open now
create_entities: Remember people, things and ideas in the knowledge graph.
  entities object[]! What to remember
    name string! Name
    entityType string! Kind
    observations string[]! What is known of it
create_relations: Connect entities of the knowledge graph.
  relations object[]! Connections, in active voice
    from string! Name of the first entity
    to string! Name of the second entity
    relationType string! How the first relates to the second
search_nodes: Search the knowledge graph.
  query string! Words in names, kinds or observations
sequential_thinking: Note one step of a longer line of reasoning; steps may be revised or branch.
  thought string! This step
  nextThoughtNeeded boolean! Whether another step follows
  thoughtNumber integer(1..)! Number of this step
  totalThoughts integer(1..)! How many are expected
  isRevision boolean Whether it corrects an earlier step
  revisesThought integer(1..) Which step it corrects
  branchFromThought integer(1..) Step where a branch begins
  branchId string Name of the branch
create_customer: Add a customer to the payment account.
  name string! Full name
  email string(email) Address
  phone string Number with country code
  metadata object Texts of your own under keys of your own
create_invoice: Make a draft invoice for a customer.
  customer string! The customer
  days_until_due integer(0..)=30 Days to pay
  currency string=eur Three letters of the currency
  items object[]! Lines of the invoice
    description string! What is charged
    amount integer(0..)! In the smallest unit of the currency
    quantity integer(1..)=1 How many
create_refund: Pay back a payment, whole or in part.
  payment_intent string! The payment
  amount integer(1..) In the smallest unit of the currency; all if left out
  reason enum(duplicate|fraudulent|requested_by_customer) Why
list_subscriptions: List subscriptions.
  customer string Only those of this customer
  status enum(active|past_due|canceled|trialing|all)=active Which ones
  limit integer(1..100)=10 How many at most
run_container: Start a container.
  image string! Name of the image, with a tag
  name string Name of the container
  command string[] Command to run instead of the image's own
  environment object Variables, name to value
  ports object[] Ports to open
    host integer(1..65535)! Port of this machine
    container integer(1..65535)! Port inside
    protocol enum(tcp|udp)=tcp Which kind
  detach boolean=true Do not wait for its end
container_logs: Read what a container has printed.
  container string! Name or id
  tail integer(1..)=100 Lines from the end
  timestamps boolean=false Tell when each was printed
kubectl_get: Show resources of the cluster.
  resource string! Kind, such as pods or deployments
  name string Only this one
  namespace string=default Where to look
  output enum(json|yaml|wide|name)=json Form of the answer
  labelSelector string Only those with these labels, such as app=web
kubectl_scale: Change the number of replicas.
  name string! The deployment
  replicas integer(0..)! How many
  namespace string=default Where it is
query_metrics: Run a PromQL query over a span of time.
  query string! The query
  start string(date-time)! Start of the span
  end string(date-time)! End of the span
  step string=60s Distance between points
search_logs: Search a service's logs.
  service string! The service
  query string! Words or fields to look for
  level enum(debug|info|warning|error) Least level
  since string=1h How far back, such as 15m or 2d
  limit integer(1..1000)=100 Lines at most
list_incidents: List incidents.
  statuses enum(triggered|acknowledged|resolved)[]=["triggered"] Which ones
  urgency enum(high|low) Only these
  team_ids string[] Only those of these teams
get_sentry_issue: Show an error with its latest trace.
  organization string! Short name of the organisation
  issue_id string! Id or address of the issue
  event_count integer(1..10)=1 How many occurrences to show
figma_get_file: Read the layers of a design.
  fileKey string! Key in the design's address
  nodeId string Only this layer, as 12:34
  depth integer(1..) Levels to go down
generate_image: Make a picture from a description.
  prompt string! What to show
  size enum(1024x1024|1792x1024|1024x1792)=1024x1024 Width and height
  n integer(1..4)=1 How many
  style enum(vivid|natural)=vivid How it looks
  seed integer To get the same picture again
transcribe_audio: Turn speech into text.
  file string! Path of the recording
  language string Two letters of the language; recognised if left out
  timestamps boolean=false Tell when each sentence was said
translate_text: Translate a text.
  text string! The text
  target_lang string! Code of the language to translate to
  source_lang string Code of the text's language; recognised if left out
  formality enum(default|more|less)=default How formal it is
search_flights: Find flights.
  origin string! Three letters of the airport
  destination string! Three letters of the airport
  departure_date string(date)! Day of the flight out
  return_date string(date) Day of the flight back; one way if left out
  adults integer(1..9)=1 Passengers
  cabin enum(economy|premium_economy|business|first)=economy Class
  max_price number(0..) Most that it may cost
get_stock_prices: Give a share's prices by day.
  symbol string! Symbol of the share
  from_date string(date)! First day
  to_date string(date)! Last day
  interval enum(day|week|month)=day Distance between prices
  adjusted boolean=true Correct them for splits and dividends
set_light_state: Switch or change a lamp.
  entity_id string! The lamp, such as light.kitchen
  state enum(on|off)! What it should be
  brightness integer(0..255) How bright
  color_temp integer(153..500) Warmth in mireds
  transition number(0..300)=0 Seconds that the change takes
play_music: Play music on a speaker.
  query string! Song, artist or list
  device string Name of the speaker; the last one used if left out
  shuffle boolean=false In any order
  volume integer(0..100) Loudness
"""
