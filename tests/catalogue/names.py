"""Tool names of agents, misspelt names as models write them, and names that mean no tool."""

from __future__ import annotations

TOOLS = (
    *("read_file", "write_file", "edit_file", "list_files", "delete_file", "move_file", "search_files", "file_info"),
    *("git_status", "git_diff", "git_log", "git_commit", "git_push", "create_branch", "list_branches"),
    *("search_web", "fetch_url", "send_email", "list_emails", "create_event", "list_events", "delete_event"),
    *("get_weather", "get_forecast", "convert_currency", "get_stock_price", "translate_text", "summarize_text"),
    *("run_tests", "run_shell_command", "query_database", "list_tables", "describe_table", "insert_row"),
    *("get_user", "create_user", "update_user", "send_message", "upload_image", "resize_image"),
)

MISSPELT = {
    # letters left out, doubled, swapped, wrong
    "serch_web": "search_web",
    "get_wether": "get_weather",
    "sned_email": "send_email",
    "git_comit": "git_commit",
    "qurey_database": "query_database",
    "discribe_table": "describe_table",
    "resise_image": "resize_image",
    "fetch_ulr": "fetch_url",
    "summarise_text": "summarize_text",
    # another way to write the same words
    "getUser": "get_user",
    "ReadFile": "read_file",
    "getStockPrice": "get_stock_price",
    "fetchURL": "fetch_url",
    "run-tests": "run_tests",
    "create-event": "create_event",
    "gitstatus": "git_status",
    "LIST_TABLES": "list_tables",
    "search web": "search_web",
    # one and many
    "list_file": "list_files",
    "send_emails": "send_email",
    "list_table": "list_tables",
    "run_test": "run_tests",
    "insert_rows": "insert_row",
    "delete_events": "delete_event",
    # a prefix or a suffix too many or too few
    "tools.git_log": "git_log",
    "functions.get_weather": "get_weather",
    "weather": "get_weather",
    "forecast": "get_forecast",
    "query_database_tool": "query_database",
    "shell_command": "run_shell_command",
    "image_resize_tool": "resize_image",
    "mcp__files__move_file": "move_file",
    # words in another order
    "web_search": "search_web",
    "file_read": "read_file",
    "user_update": "update_user",
    "branch_create": "create_branch",
    "currency_convert": "convert_currency",
    "url_fetch": "fetch_url",
    # another word for one of them
    "get_stock_prices_today": "get_stock_price",
    "translate": "translate_text",
}

UNRELATED = (
    *("play_music", "book_flight", "calculator", "solve_equation", "order_pizza", "generate_video", "speak"),
    *("lock_door", "turn_on_lights", "think", "final_answer", "python", "ask_human", "transcribe_audio"),
    *("get", "run", "x", "", "_", "sleep_timer", "navigate_map", "zzzzzzzz", "42", "天气查询"),
    *("delete_user", "create_issue", "git_pull", "read_email", "list_contacts", "convert_units", "upload_file"),
    *("compress_archive", "plot_chart", "scan_network", "verify_signature"),
)
